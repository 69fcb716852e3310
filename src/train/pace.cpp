#include "train/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "plan/budget_error.h"
#include "plan/simulator.h"

namespace penstock::training {
namespace {

/// Prediction and measurement agree if they are no further apart than this.
constexpr double kClose = 0.04;
/// A new plan must promise at least this, or it is not worth the change.
constexpr double kWorthIt = 0.99;
/// A tier is another one than was measured only beyond this.
constexpr double kTierChange = 0.2;
/// Planning again takes memory that was set aside; more than this share of the budget is not.
constexpr std::int64_t kPlannerShare = 8;

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

Pace::Pace(const Program& program, Engine& engine)
    : program_(program),
      engine_(engine),
      ops_(program.training->graph.ops.size()),
      next_look_(3),
      patience_(8) {}

std::optional<std::string> Pace::after_step(const run::StepStats& stats, const run::Trace& events) {
  ++steps_;
  if (steps_ == 1) {  // The first touches memory for the first time and fills caches.
    before_ = engine_.tier_stats();
    looked_from_ = steps_;
    return std::nullopt;
  }
  look(stats, events);
  const MemoryPlan& plan = engine_.memory_plan();
  if (plan.policy != "auto" || !plan.profile) return std::nullopt;
  if (!plan.overhead.contains("planner") || plan.planner_bytes > plan.budget_bytes / kPlannerShare)
    return std::nullopt;
  if (steps_ < next_look_ || !is_off()) return std::nullopt;
  const std::int64_t replans = replans_;
  const std::string line = plan_again();
  next_look_ = steps_ + patience_;
  patience_ = replans_ > replans ? 8 : 2 * patience_;
  before_ = engine_.tier_stats();
  looked_from_ = steps_;
  step_ = host_ = {};
  if (replans_ == replans) return std::nullopt;
  fastest_ = {};
  return line;
}

void Pace::look(const run::StepStats& stats, const run::Trace& events) {
  Seen step;
  step.seconds = stats.step_seconds;
  step.host_seconds =
      std::max(0.0, stats.step_seconds - stats.compute_seconds - stats.stall_seconds - stats.network_seconds);
  step.op_seconds.resize(ops_.size());
  for (const run::TraceEvent& event : events.events) {
    // What an op waits for other ranks is the network's time.
    if (event.action != plan::Action::run || ir::is_exchange_wait(program_.training->graph.op(event.id).kind))
      continue;
    const double seconds = event.end_seconds - event.start_seconds;
    ops_[static_cast<std::size_t>(event.id)].add(seconds);
    if (!event.repeated) step.op_seconds[static_cast<std::size_t>(event.id)] = seconds;
  }
  step_.add(step.seconds);
  host_.add(step.host_seconds);
  if (fastest_.op_seconds.empty() || step.seconds < fastest_.seconds) fastest_ = std::move(step);
}

bool Pace::is_off() const {
  if (step_.count < 2) return false;
  return std::abs(step_.mean() / engine_.memory_plan().predicted_step_seconds - 1) > kClose;
}

std::optional<plan::Profile> Pace::seen_profile(const plan::Profile& before) const {
  if (fastest_.op_seconds.empty()) return std::nullopt;
  return with_seen(before, fastest_);
}

Pace::Seen Pace::recent() const {
  Seen seen;
  seen.seconds = step_.mean();
  seen.host_seconds = host_.mean();
  for (const Recent& op : ops_) seen.op_seconds.push_back(op.mean());
  return seen;
}

plan::Profile Pace::with_seen(const plan::Profile& before, const Seen& seen) const {
  const MemoryPlan& plan = engine_.memory_plan();
  const plan::Summary& summary = plan.training->summary;
  plan::Profile profile = before;
  std::vector<std::int32_t> variant(ops_.size(), 0);
  for (const plan::Instruction& in : plan.training->instructions) {
    if (in.action == plan::Action::run) variant[static_cast<std::size_t>(in.id)] = in.variant;
  }
  // What was seen of ops has in it what transfers beside them cost, which the simulation counts by itself.
  const double compute = std::accumulate(seen.op_seconds.begin(), seen.op_seconds.end(), 1e-9);
  const double slowed = before.host.transfer_seconds_per_byte *
                        static_cast<double>(summary.swapped_in_bytes + summary.swapped_out_bytes);
  const double undisturbed = std::max(0.5, 1 - slowed / compute);
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    // Those would count the time that they wait for other ranks, which the network's lane has already.
    if (ir::has_side_effects(program_.training->graph.ops[op].kind)) continue;
    if (seen.op_seconds[op] == 0) continue;
    profile.op_seconds[op][static_cast<std::size_t>(variant[op])] = undisturbed * seen.op_seconds[op];
  }
  const std::int64_t steps = steps_ - looked_from_;
  if (steps == 0) return profile;
  const TierStats now = engine_.tier_stats();
  const plan::Problem problem = problem_again(program_, plan);
  const plan::Simulation planned = plan::simulate(problem, *plan.training, before);
  if (planned.host_seconds > 0) {
    const double ratio = seen.host_seconds / planned.host_seconds;
    if (problem.remaps) {
      profile.host.mapping_seconds *= ratio;
      profile.host.mapping_seconds_per_byte *= ratio;
    }
    profile.host.transfer_seconds *= ratio;
  }
  const double reads =
      speed_ratio(now.read_bytes - before_.read_bytes, now.read_seconds - before_.read_seconds,
                  summary.swapped_in_bytes, planned.read_seconds);
  const double writes =
      speed_ratio(now.written_bytes - before_.written_bytes, now.write_seconds - before_.write_seconds,
                  summary.swapped_out_bytes, planned.write_seconds);
  profile.tier.read_bandwidth *= reads;
  profile.tier.read_bandwidth_together *= reads;
  profile.tier.write_bandwidth *= writes;
  profile.tier.write_bandwidth_together *= writes;
  return profile;
}

std::string Pace::plan_again() {
  const MemoryPlan& now = engine_.memory_plan();
  const plan::Profile seen = with_seen(*now.profile, recent());
  const plan::Problem problem = problem_again(program_, now);
  const double as_planned = now.predicted_step_seconds;
  const double kept_seconds = plan::simulate(problem, *now.training, seen).step_seconds;
  std::optional<PlannedAgain> changed;
  double changed_seconds = std::numeric_limits<double>::infinity();
  try {
    changed = training::plan_again(program_, now, seen);
    changed_seconds = plan::simulate(problem, changed->training, seen).step_seconds;
  } catch (const plan::BudgetError&) {
    // The pool was made for the plan that it has, and may hold no other.
  }
  std::string line =
      fmt::format("step {}: {:.2f} s where {:.2f} s were planned", steps_, step_.mean(), as_planned);
  const double tier = seen.tier.read_bandwidth / now.profile->tier.read_bandwidth;
  if (tier != 1) {
    line += fmt::format(", reads from the tier at {}/s ({:.0f} % of what was measured)",
                        format_bytes(static_cast<std::int64_t>(seen.tier.read_bandwidth)), 100 * tier);
  }
  if (changed_seconds > kWorthIt * kept_seconds) {
    engine_.replace_profile(seen, kept_seconds);
    return line;
  }
  engine_.replace_plan(std::move(*changed));
  engine_.replace_profile(seen, changed_seconds);
  ++replans_;
  return line + fmt::format("; planned again: {:.2f} s", changed_seconds);
}

}  // namespace penstock::training
