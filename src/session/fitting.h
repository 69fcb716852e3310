#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/paged_memory.h"
#include "fit/fit.h"
#include "measure/profile_store.h"
#include "penstock/session.h"
#include "session/division.h"
#include "session/program.h"
#include "tier/make_tier.h"

namespace penstock::session {

/// What the options say of the tier.
TierOptions tier_options(const MemoryOptions& options);

/// Paged memory for what describes steps within such a budget, on the disk that is swapped to.
PagedMemory paged_memory(const MemoryOptions& options);

/// Brings a program and a budget together for a session: measures what the process takes, gets the profile,
/// asks fit/ for a fit. Program and options must outlive it. One thread.
class Fitting {
 public:
  /// `resident_before_bytes`: of the process, when the session began. `available_bytes`: of memory, for this
  /// rank. `ranks_here`: how many share this machine's disk. `paged`: whether there is paged memory.
  Fitting(const Program& program, const SessionOptions& options, int threads,
          std::int64_t resident_before_bytes, std::int64_t available_bytes, std::int64_t rank_bytes,
          const plan::LinkProfile& link, int ranks_here, bool paged);

  /// The fit to run by: from the plan file, or the best within the budget. Throws plan::BudgetError.
  fit::Fit fit();
  /// Gets ready for fit_within(): finds the profile that is there already or an estimate, and looks at what
  /// the process has before any budget is planned for.
  void prepare();
  /// A fit within another budget. Throws plan::BudgetError. Needs prepare(); several threads may call it.
  fit::Fit fit_within(std::int64_t budget_bytes) const;
  /// Whether some fit exists; the smallest budget that has one, with what differs from run to run.
  bool fits(std::int64_t budget_bytes) const;
  std::int64_t smallest_budget() const;
  /// Whether space on the tier is scarce and the policy is free to compute again in its place. Then what a
  /// plan::BudgetError says is needed may be more than that.
  bool may_compute_again_for_space() const;
  /// What that is made of, a line each.
  std::vector<std::string> explain_smallest(std::int64_t smallest_bytes) const;
  std::int64_t in_memory_bytes() const;
  /// Predicted, by the profile of fit_within(), if everything stays.
  double in_memory_seconds();

  /// The one that was named, or what is free less a margin.
  std::int64_t budget_bytes() const;
  /// Space on the tier: what was named, or this rank's share of what was free when the fitting was made, less
  /// a margin.
  std::int64_t swap_space_bytes() const;
  /// Where the profile came from; empty where there was none.
  const std::string& profile_source() const { return profile_source_; }
  double plan_seconds() const { return plan_seconds_; }
  measure::ProfileStore* profiles() { return profiles_.get(); }

 private:
  /// `plan_bytes`: of a plan that is not made yet.
  /// The smallest budget in which a plan can be made, by a search or by one walk over the step.
  enum class Effort : std::uint8_t { walk, search };
  std::int64_t planning_budget_bytes(Effort effort) const;
  fit::Division division(std::int64_t budget_bytes, std::int64_t planner_bytes,
                         const StepBytes& plan_bytes) const;
  fit::Request request(std::int64_t budget_bytes, std::int64_t planner_bytes,
                       const StepBytes& plan_bytes) const;
  /// Of the plans that will be made.
  StepBytes plan_bytes() const;
  fit::Fit from_file() const;
  const plan::Profile& measured_profile();
  const plan::Profile& found_profile();
  fit::Fit best(std::int64_t budget_bytes, const plan::Profile* profile) const;

  const Program& program_;
  const SessionOptions& options_;
  int threads_;
  std::int64_t resident_before_bytes_, available_bytes_, rank_bytes_;
  std::int64_t free_disk_bytes_;             ///< for this rank
  bool paged_;                               ///< whether long vectors are
  std::int64_t assumed_resident_bytes_ = 0;  ///< of the process, without what is paged; 0: to be measured
  std::int64_t assumed_paged_bytes_ = 0;
  std::int64_t touched_bytes_ = 0;  ///< by kernels and tier while they were measured
  plan::LinkProfile link_;
  std::unique_ptr<measure::ProfileStore> profiles_;
  std::optional<plan::Profile> profile_;
  std::string profile_source_;
  double plan_seconds_ = 0;
};

}  // namespace penstock::session
