#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/profile.h"
#include "run/step_stats.h"
#include "train/engine.h"
#include "train/program.h"

namespace penstock::training {

/// Compares each step with its prediction. Where they keep apart, it takes what was measured for the profile
/// and plans the step again: between two steps, for the same pool and tier, with the same results. One thread
/// calls it; program and engine must outlive it.
class Pace {
 public:
  Pace(const Program& program, Engine& engine);

  /// After each step, with that step's events. Returns what the user should know if the step was planned
  /// again.
  std::optional<std::string> after_step(const run::StepStats& stats, const run::Trace& events);

  /// The profile with the times of the fastest step (what others took from the machine is not for the next
  /// run to know); none before a second step.
  std::optional<plan::Profile> seen_profile(const plan::Profile& before) const;
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
    std::vector<double> op_seconds;  ///< 0: not seen
  };

  void look(const run::StepStats& stats, const run::Trace& events);
  bool is_off() const;
  Seen recent() const;
  plan::Profile with_seen(const plan::Profile& before, const Seen& seen) const;
  std::string plan_again();

  const Program& program_;
  Engine& engine_;
  std::vector<Recent> ops_;
  Recent step_, host_;
  Seen fastest_;  ///< by the plan in use
  std::int64_t steps_ = 0;
  std::int64_t next_look_ = 0;  ///< no earlier than after this step
  std::int64_t patience_ = 0;   ///< steps between two looks; longer each time that nothing came of it
  std::int64_t replans_ = 0;
  TierStats before_;  ///< when the steps that are looked at began
  std::int64_t looked_from_ = 0;
};

}  // namespace penstock::training
