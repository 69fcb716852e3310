#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace penstock::dist {

/// MPI_COMM_WORLD as the communication thread sees it: errors become RunError, and waiting sleeps instead of
/// spinning. One thread makes, uses and destroys it.
class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_size() const { return local_size_; }

  /// Non-blocking; `size_bytes` may be 0 and is below 2 GiB.
  MPI_Request send(const void* data, std::int64_t size_bytes, int to, int tag);
  MPI_Request receive(void* data, std::int64_t size_bytes, int from, int tag);

 private:
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
};

/// Throws RunError that says what MPI says.
void check_mpi(int code);

}  // namespace penstock::dist
