#include "session/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "plan/budget_error.h"

namespace penstock::session {
namespace {

/// Prediction and measurement agree if they are no further apart than this.
constexpr double kClose = 0.04;
/// A new plan must promise at least this, or it is not worth the change.
constexpr double kWorthIt = 0.99;
/// A tier is another one than was measured only beyond this.
constexpr double kTierChange = 0.2;

/// How much faster or slower a direction was than the simulation had it; 1 where too little was moved.
double speed_ratio(std::int64_t bytes, double seconds, std::int64_t planned_bytes, double planned_seconds) {
  if (bytes < kMiB || planned_bytes < kMiB || seconds <= 0 || planned_seconds <= 0) return 1;
  const double ratio =
      (static_cast<double>(bytes) / seconds) / (static_cast<double>(planned_bytes) / planned_seconds);
  return std::abs(ratio - 1) > kTierChange ? ratio : 1;
}

}  // namespace

// Not the median: a step's time is the sum of its ops' means, not of their medians.
double Pace::Recent::mean() const {
  const std::size_t known = std::min<std::size_t>(count, kRecent);
  double sum = 0;
  for (std::size_t i = 0; i < known; ++i) sum += static_cast<double>(seconds[i]);
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

Pace::Pace(const fit::Steps& steps) : steps_(steps), ops_(steps.training->graph.ops.size()) {}

std::optional<PaceChange> Pace::after_step(const fit::Fit& now, const StepStats& stats,
                                           const run::Trace& events, const TierStats& tier, bool may_replan) {
  ++steps_done_;
  if (steps_done_ == 1) {  // The first touches memory for the first time and fills caches.
    before_ = tier;
    looked_from_ = steps_done_;
    return std::nullopt;
  }
  look(stats, events);
  if (now.policy != plan::PolicyKind::automatic || !now.profile || !may_replan) return std::nullopt;
  if (steps_done_ < next_look_ || !is_off(now)) return std::nullopt;
  PaceChange change = fit_again(now, tier);
  next_look_ = steps_done_ + patience_;
  patience_ = change.replanned ? 8 : 2 * patience_;
  before_ = tier;
  looked_from_ = steps_done_;
  step_ = host_ = {};
  if (change.replanned) {
    ++replans_;
    fastest_ = {};
  }
  return change;
}

void Pace::look(const StepStats& stats, const run::Trace& events) {
  Seen step;
  step.seconds = stats.step_seconds;
  step.host_seconds = std::max(
      0.0, stats.step_seconds - stats.compute_seconds - stats.stall_seconds - stats.exchange_seconds);
  step.op_seconds.resize(ops_.size());
  const auto note = [&](ir::OpId op, bool repeated, double seconds) {
    // What an op waits for other ranks is the link's time.
    if (ir::is_exchange_wait(steps_.training->graph.op(op).kind)) return;
    ops_[static_cast<std::size_t>(op)].add(seconds);
    if (!repeated) step.op_seconds[static_cast<std::size_t>(op)] = static_cast<float>(seconds);
  };
  for (const run::OpTime& time : events.op_times)
    note(time.op, time.repeated, static_cast<double>(time.seconds));
  for (const run::TraceEvent& event : events.events) {
    if (event.action == plan::Action::run)
      note(event.id, event.repeated, event.end_seconds - event.start_seconds);
  }
  step_.add(step.seconds);
  host_.add(step.host_seconds);
  if (fastest_.op_seconds.empty() || step.seconds < fastest_.seconds) fastest_ = std::move(step);
}

bool Pace::is_off(const fit::Fit& now) const {
  if (step_.count < 2) return false;
  return std::abs(step_.mean() / now.predicted_seconds() - 1) > kClose;
}

std::optional<plan::Profile> Pace::seen_profile(const fit::Fit& now, const plan::Profile& before,
                                                const TierStats& tier) const {
  if (fastest_.op_seconds.empty()) return std::nullopt;
  return with_seen(now, before, fastest_, tier);
}

Pace::Seen Pace::recent() const {
  Seen seen;
  seen.seconds = step_.mean();
  seen.host_seconds = host_.mean();
  for (const Recent& op : ops_) seen.op_seconds.push_back(static_cast<float>(op.mean()));
  return seen;
}

plan::Profile Pace::with_seen(const fit::Fit& now, const plan::Profile& before, const Seen& seen,
                              const TierStats& tier) const {
  const plan::Plan& plan = now.training->plan;
  const plan::Summary& summary = plan.summary;
  plan::Profile profile = before;
  std::vector<std::int32_t> variant(ops_.size(), 0);
  for (const plan::Instruction& in : plan.instructions) {
    if (in.action == plan::Action::run) variant[static_cast<std::size_t>(in.id)] = in.variant;
  }
  // What was seen of ops has in it what transfers beside them cost, which the simulation counts by itself.
  const double compute = std::accumulate(seen.op_seconds.begin(), seen.op_seconds.end(), 1e-9);
  const double slowed = before.host.transfer_seconds_per_byte *
                        static_cast<double>(summary.swapped_in_bytes + summary.swapped_out_bytes);
  const double undisturbed = std::max(0.5, 1 - slowed / compute);
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    // Those would count the time that they wait for other ranks, which the link's lane has already.
    if (ir::has_side_effects(steps_.training->graph.ops[op].kind)) continue;
    if (seen.op_seconds[op] == 0) continue;
    profile.op_seconds.set(op, static_cast<std::size_t>(variant[op]),
                           undisturbed * static_cast<double>(seen.op_seconds[op]));
  }
  // The prediction is by the profile before. Where there is none nothing is moved, and planning has not
  // asked.
  if (steps_done_ == looked_from_ || !now.prediction) return profile;
  const plan::Simulation& planned = *now.prediction;
  if (planned.host_seconds > 0) {
    const double ratio = seen.host_seconds / planned.host_seconds;
    if (now.training->problem.remaps) {
      profile.host.mapping_seconds *= ratio;
      profile.host.mapping_seconds_per_byte *= ratio;
    }
    profile.host.transfer_seconds *= ratio;
  }
  const double reads =
      speed_ratio(tier.read_bytes - before_.read_bytes, tier.read_seconds - before_.read_seconds,
                  summary.swapped_in_bytes, planned.read_seconds);
  const double writes =
      speed_ratio(tier.written_bytes - before_.written_bytes, tier.write_seconds - before_.write_seconds,
                  summary.swapped_out_bytes, planned.write_seconds);
  profile.tier.read_bandwidth *= reads;
  profile.tier.read_bandwidth_together *= reads;
  profile.tier.write_bandwidth *= writes;
  profile.tier.write_bandwidth_together *= writes;
  return profile;
}

PaceChange Pace::fit_again(const fit::Fit& now, const TierStats& tier) {
  const plan::Profile seen = with_seen(now, *now.profile, recent(), tier);
  PaceChange change{now, false, ""};
  fit::predict(steps_, change.fit, seen);
  const double kept_seconds = change.fit.predicted_seconds();
  try {
    // What it loses as it was seen to run says how long a better plan is searched for.
    fit::Fit other = fit::refit(steps_, change.fit, seen);
    if (other.predicted_seconds() <= kWorthIt * kept_seconds) {
      change.fit = std::move(other);
      change.replanned = true;
    }
  } catch (const plan::BudgetError&) {
    // The pool was made for the plan that it has, and may hold no other.
  }
  if (!change.replanned) return change;
  change.line = fmt::format("step {}: {:.2f} s where {:.2f} s were planned", steps_done_, step_.mean(),
                            now.predicted_seconds());
  const double speed = seen.tier.read_bandwidth / now.profile->tier.read_bandwidth;
  if (speed != 1) {
    change.line +=
        fmt::format(", reads from the tier at {}/s ({:.0f} % of what was measured)",
                    format_bytes(static_cast<std::int64_t>(seen.tier.read_bandwidth)), 100 * speed);
  }
  change.line += fmt::format("; planned again: {:.2f} s", change.fit.predicted_seconds());
  return change;
}

}  // namespace penstock::session
