#pragma once

// The processes that train together under mpirun.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

namespace dist {
class Communicator;
}

/// The processes that train together, as one of them sees it. One thread uses it.
class Ranks {
 public:
  explicit Ranks(std::unique_ptr<dist::Communicator> communicator);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  dist::Communicator& communicator() { return *communicator_; }

  /// Of what each rank gives; all ranks call it and get the same.
  double mean(double value);
  std::int64_t sum(std::int64_t value);
  std::vector<std::int64_t> all(std::int64_t value);  ///< by rank

  /// Each rank does its part; if that fails on any, all throw the same: what is wrong, and on which rank
  /// unless it is on all. There must be no talk between ranks in a part.
  void together(const std::function<void()>& part);
  /// Does what the ranks do side by side. What fails on this rank alone is told to `on_failure` (message,
  /// exit code), which should end all ranks: they wait for this one.
  void side_by_side(const std::function<void()>& part,
                    const std::function<void(const std::string&, int)>& on_failure);
  /// Throws RunError on all ranks alike; to be called by all.
  [[noreturn]] void fail_together(const std::string& message);
  /// Ends all ranks at once, this process included.
  [[noreturn]] void abort(int exit_code);

 private:
  std::unique_ptr<dist::Communicator> communicator_;
  bool agreed_ = false;  ///< all ranks throw the same just now
};

/// Joins the processes that mpirun started; without it, one rank alone. Call it once in a process.
std::shared_ptr<Ranks> join_ranks();
/// Which of mpirun's processes this is, known before they are joined; 0 without mpirun.
int launched_rank();

}  // namespace penstock
