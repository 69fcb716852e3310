#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::dist {

/// What the ranks do with an array of which each has one of its own. Slices are those of rank_slice().
enum class Exchange : std::uint8_t {
  all_reduce,      ///< everywhere the mean over the ranks
  reduce_scatter,  ///< each rank's own slice becomes the mean; what the rest holds then is undefined
  all_gather,      ///< each slice becomes what the rank has that owns it
};

/// What exchanges took since the communicator was made.
struct ExchangeStats {
  std::int64_t sent_bytes = 0;  ///< by this rank
  double busy_seconds = 0;      ///< an exchange was under way
  double wait_seconds = 0;      ///< the caller stood in wait()
};

/// The processes that train together. Sums are added in the order of the ranks, whatever arrives first, so
/// the same ranks give the same bits. All ranks must make the same calls in the same order. One thread calls
/// it. Any call may throw RunError when a transfer fails; then only abort() and the destructor may be called.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// How many of the ranks run on this machine.
  virtual int local_size() const = 0;
  /// Memory that exchanges may take beside the arrays and what it took when it was made.
  virtual std::int64_t growth_bytes() const = 0;

  /// Starts an exchange and returns at once. Until wait(ticket) returns the array belongs to the
  /// communicator. Exchanges are served one after the other.
  virtual void start(int ticket, Exchange exchange, float* values, std::int64_t count) = 0;
  virtual void wait(int ticket) = 0;
  virtual ExchangeStats stats() const = 0;

  /// What each rank gave, by rank. For small values.
  virtual std::vector<std::string> all_gather(const std::string& value) = 0;
  /// Everybody's array becomes that of rank 0.
  virtual void broadcast(float* values, std::int64_t count) = 0;
  /// Rank q has elements [bounds[q], bounds[q + 1]) of an array as `own`; rank 0 gets them all in `whole`,
  /// which the others need not have.
  virtual void gather(const float* own, std::span<const std::int64_t> bounds, float* whole) = 0;

  /// Ends all ranks at once, this process included, with this exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

/// One rank that has nobody to talk to.
std::unique_ptr<Communicator> make_alone();

/// What the launcher (mpirun, srun) told this process through its environment; rank 0 of 1 without one.
struct Launch {
  int rank = 0;
  int size = 1;
  bool launched = false;
};
Launch launch_from_environment();

/// Joins the ranks that the launcher started; alone if there was none. Throws UserError where there are
/// several ranks and this build has no MPI. Call it once in a process.
std::unique_ptr<Communicator> join();

}  // namespace penstock::dist
