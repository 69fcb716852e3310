#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/long_vector.h"
#include "fit/fit.h"
#include "penstock/step_stats.h"
#include "plan/profile.h"
#include "run/trace.h"
#include "tier/tier.h"

namespace penstock::session {

/// What Pace has to say after a step: a fit to go on with, by a profile of what was seen.
struct PaceChange {
  fit::Fit fit;
  bool replanned = false;  ///< otherwise the plan is the same, and only its prediction is another
  std::string line;        ///< for the user, where it was planned again
};

/// Compares each step with its prediction. Where they keep apart, it takes what was measured for the profile
/// and fits the step again: between two steps, for the same pool and tier, with the same results. Looks at
/// nothing but its arguments. One thread calls it; the steps must outlive it.
class Pace {
 public:
  explicit Pace(const fit::Steps& steps);

  /// After each step by `now`, with that step's events and what the tier has counted so far. `may_replan`:
  /// whether there is memory set aside to plan with.
  std::optional<PaceChange> after_step(const fit::Fit& now, const StepStats& stats, const run::Trace& events,
                                       const TierStats& tier, bool may_replan);

  /// The profile with the times of the fastest step (what others took from the machine is not for the next
  /// run to know); none before a second step.
  std::optional<plan::Profile> seen_profile(const fit::Fit& now, const plan::Profile& before,
                                            const TierStats& tier) const;
  std::int64_t replans() const { return replans_; }

 private:
  static constexpr std::size_t kRecent = 3;

  /// The last few times of something.
  struct Recent {
    std::array<float, kRecent> seconds{};
    std::uint32_t count = 0;

    void add(double value) { seconds[count++ % kRecent] = static_cast<float>(value); }
    double mean() const;
  };

  /// What a step took.
  struct Seen {
    double seconds = 0, host_seconds = 0;
    LongVector<float> op_seconds;  ///< 0: not seen
  };

  void look(const StepStats& stats, const run::Trace& events);
  bool is_off(const fit::Fit& now) const;
  Seen recent() const;
  plan::Profile with_seen(const fit::Fit& now, const plan::Profile& before, const Seen& seen,
                          const TierStats& tier) const;
  PaceChange fit_again(const fit::Fit& now, const TierStats& tier);

  const fit::Steps steps_;
  LongVector<Recent> ops_;
  Recent step_, host_;
  Seen fastest_;  ///< by the plan in use
  std::int64_t steps_done_ = 0;
  std::int64_t next_look_ = 3;  ///< no earlier than after this step
  std::int64_t patience_ = 8;   ///< steps between two looks; longer each time that nothing came of it
  std::int64_t replans_ = 0;
  TierStats before_;  ///< when the steps that are looked at began
  std::int64_t looked_from_ = 0;
};

}  // namespace penstock::session
