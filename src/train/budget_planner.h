#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "plan/budget_error.h"
#include "plan/profile.h"
#include "train/job.h"
#include "train/memory_plan.h"
#include "train/pace.h"
#include "train/profile_store.h"

namespace penstock::training {

/// The process's own share differs a little from run to run; a budget that is advised has so much more.
inline constexpr std::int64_t kUnsteadyBytes = 6 * kMiB;

/// Divides a budget between the process and the pool of a job's program, and plans within it. The job must
/// have been built and outlive it. One thread.
class BudgetPlanner {
 public:
  explicit BudgetPlanner(Job& job) : job_(job) {}

  /// As the options say: by a plan file, within the named budget, or within what is free. Throws UserError
  /// that says what would work instead.
  MemoryPlan plan();
  /// Throws BudgetError.
  MemoryPlan plan_twice(std::int64_t budget);

  /// The budget that the user named.
  std::int64_t named_budget() const;
  /// What the process takes beside the pool, for a batch.
  Overhead overhead(std::int64_t batch) const;
  /// From now on the program is taken to have so many bytes, whatever it has; 0: as much as it has.
  void assume_program_bytes(std::int64_t bytes) { program_bytes_ = bytes; }
  std::int64_t smallest_budget(const Overhead& beside) const;
  /// The largest batch that fits, also above the one asked for. Leaves no program behind that can be used.
  std::int64_t largest_batch_from(std::int64_t budget);

  /// For `plan`: what is there already, unless the user wants it measured; else an estimate.
  const plan::Profile& found_profile();
  /// Where the profile came from; empty where there was none.
  const std::string& profile_source_name() const { return profile_source_name_; }
  /// Keeps what was seen for the next run. All in memory, nothing was measured; but what is known from
  /// earlier can be bettered.
  void keep_seen(const Pace& pace, const MemoryPlan& plan) const;

  /// The process's peak before it was set back to look at planning by itself.
  std::int64_t earlier_peak_bytes() const { return earlier_peak_bytes_; }

 private:
  MemoryPlan plan_from_file(std::int64_t budget) const;
  MemoryPlan plan_within(std::int64_t budget);
  /// The program's profile, got once.
  ProfileSource profile_source();
  static std::int64_t advised_mib(const plan::BudgetError& error);
  /// Says what would work instead: a larger budget, or the largest batch that this one can train.
  [[noreturn]] void refuse(const plan::BudgetError& error, std::int64_t budget);
  /// Leaves no program behind that can be used.
  bool batch_fits(std::int64_t batch, std::int64_t budget);
  /// The largest batch from `low`, which fits, up to below `high`, which does not.
  std::int64_t largest_batch_between(std::int64_t low, std::int64_t high, std::int64_t budget);
  /// The largest batch below the one asked for that fits the budget; 0 if none does.
  std::int64_t largest_batch(std::int64_t budget);

  Job& job_;
  std::unique_ptr<ProfileStore> profiles_;
  std::optional<plan::Profile> profile_;
  std::string profile_source_name_;
  std::int64_t earlier_peak_bytes_ = 0;
  std::int64_t program_bytes_ = 0;  ///< what the process takes; 0: to be looked up
};

}  // namespace penstock::training
