#include "fit/fit.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "fit/offset_check.h"
#include "fit/pool_fitter.h"
#include "fit/step_problem.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/tier_places.h"

namespace penstock::fit {
namespace {

using plan::PolicyKind;

/// How often a step is planned again, for less each time, until it fits a pool that is there, and how often
/// at most by a search that takes seconds: training stands still for that long.
constexpr int kRefitTries = 3, kThoroughRefits = 2;

/// The pools that the request allows, the one first that is taken where both are as good.
LongVector<PoolKind> pools_of(const Request& request) {
  if (request.pool) return {*request.pool};
  return {PoolKind::packed, PoolKind::paged};
}

/// What plans at once whatever the policy can.
PolicyKind quick(PolicyKind policy) {
  return policy == PolicyKind::automatic ? PolicyKind::window : policy;
}

/// Says what would do: more memory, or, if it is that, more space on the tier.
[[noreturn]] void refuse(const Steps& steps, PolicyKind policy, std::int64_t least_pool_bytes,
                         const Request& request) {
  std::int64_t tier_bytes = 0;
  if (request.tier_bytes != plan::kNoLimit) {
    Request unlimited = request;
    unlimited.tier_bytes = plan::kNoLimit;
    try {
      tier_bytes = first_fit(steps, unlimited).map.tier_bytes;
    } catch (const plan::BudgetError&) {
      // Space on the tier alone would not do.
    }
  }
  throw plan::BudgetError(plan::policy_name(policy), least_pool_bytes + request.division.beside_bytes(),
                          request.division.budget_bytes, tier_bytes);
}

/// Some fit into one pool, found quickly where space on the tier is no matter.
std::optional<Fit> some_fit(PoolFitter& fitter, PolicyKind policy, const Request& request) {
  const std::int64_t capacity = request.division.pool_bytes();
  std::optional<Fit> fit = fitter.any(quick(policy), capacity);
  if (!fit && policy == PolicyKind::automatic && request.tier_bytes != plan::kNoLimit)
    fit = fitter.computing_again(capacity);
  return fit;
}

/// Everything stays, where some pool can hold that.
std::optional<Fit> keep_fit(const Steps& steps, const Request& request) {
  for (const PoolKind kind : pools_of(request)) {
    PoolFitter fitter(steps, request, kind);
    if (fitter.keep_bytes() > request.division.pool_bytes()) continue;
    if (std::optional<Fit> fit = fitter.any(PolicyKind::keep, request.division.pool_bytes())) return fit;
  }
  return std::nullopt;
}

/// The best fit into one pool; `some` is any.
Fit best_in_pool(PoolFitter& fitter, PolicyKind policy, const Request& request, const plan::Profile* profile,
                 const Fit& some) {
  const std::int64_t capacity = request.division.pool_bytes();
  if (policy != PolicyKind::automatic) return fitter.fullest(policy, capacity, profile, some);
  Fit window = fitter.fullest(PolicyKind::window, capacity, profile, some);
  shed_problems(window);
  Fit best = fitter.fullest(policy, capacity, profile, window);
  // A pool that leaves gaps may hold a smaller plan that is faster.
  if (window.prediction && best.prediction && judged_seconds(window) < judged_seconds(best)) {
    const Fit slower = std::move(best);
    best = window;
    for (auto* fitted : {&best.training, &best.evaluation}) {
      if (*fitted) (*fitted)->plan.policy = plan::policy_name(policy);
    }
    add_extents(best.map, slower.map);
  } else {
    add_extents(best.map, window.map);
  }
  best.policy = policy;
  return best;
}

/// Planning a longer step takes so long that it is not done for a small gain.
bool is_long(const Fit& fit) {
  constexpr std::size_t kLongStep = 10000;
  return fit.training->problem.graph->ops.size() >= kLongStep;
}

/// The share of the step that it waits and computes again.
double lost_share(const Fit& fit) {
  const plan::Simulation& step = *fit.prediction;
  return (step.stall_seconds + step.recompute_seconds) / step.step_seconds;
}

/// Loses so little that no other pool can be better, or, where planning takes long, not by much.
bool hardly_worse_than_compute(const Fit& fit) {
  return fit.prediction && lost_share(fit) < (is_long(fit) ? 0.1 : 0.03);
}

/// Whether a step loses so much that a search which takes seconds is worth them.
bool is_worth_searching(const Fit& fit) {
  constexpr double kMuch = 0.05;
  return fit.policy == PolicyKind::automatic && fit.prediction && !is_long(fit) && lost_share(fit) >= kMuch;
}

/// A faster fit than the one that was found quickly, where there is one.
void search_on(const PoolFitter& fitter, const Request& request, const plan::Profile& profile, Fit& best) {
  if (!is_worth_searching(best)) return;
  shed_problems(best);
  std::optional<Fit> found = fitter.thorough(request.division.pool_bytes(), profile, best);
  if (!found) return;
  add_extents(found->map, best.map);
  best = std::move(*found);
}

/// The best fit into one kind of pool.
struct InPool {
  PoolKind kind;
  Fit fit;
};

/// The fastest, once those that lose much were searched for longer. That takes seconds, so of two pools it is
/// done for the one without gaps, unless the other is far ahead.
Fit best_of(const Steps& steps, const Request& request, const plan::Profile& profile,
            std::vector<InPool>& found) {
  constexpr double kFarAhead = 0.9;
  const double last = judged_seconds(found.back().fit);
  for (InPool& each : found) {
    if (&each != &found.back() && judged_seconds(each.fit) > kFarAhead * last) continue;
    search_on(PoolFitter(steps, request, each.kind), request, profile, each.fit);
    shed_problems(each.fit);
  }
  const auto best = std::min_element(found.begin(), found.end(), [](const InPool& a, const InPool& b) {
    return judged_seconds(a.fit) < judged_seconds(b.fit);
  });
  return std::move(best->fit);
}

/// Where everything lies on the tier now that the training plan is another one: state stays where it is, the
/// rest finds a place about it. Throws BudgetError where the tier is too small for that.
void place_again(Fit& fit) {
  const plan::Problem& problem = fit.training->problem;
  LongVector<std::int64_t> fixed(problem.storages.size(), -1);
  for (std::size_t s = 0; s < fixed.size(); ++s) {
    if (problem.storages[s].carried) fixed[s] = fit.map.place(s);
  }
  const std::int64_t taken = place_plans(fit, fixed);
  if (taken > fit.map.tier_bytes) {
    throw plan::BudgetError(fit.training->plan.policy, problem.budget_bytes + 1, problem.budget_bytes, taken);
  }
  move_extents(fit.map, fit.training->plan.places);
}

/// How much of a layout the pool has room for, by what there is least of.
double share_that_fits(const PoolSize& pool, const PoolSize& layout) {
  const auto share = [](std::int64_t there, std::int64_t needed) {
    return needed <= there ? 1.0 : static_cast<double>(there) / static_cast<double>(needed);
  };
  return std::min({share(pool.small_bytes, layout.small_bytes), share(pool.paged_bytes, layout.paged_bytes),
                   share(pool.address_bytes, layout.address_bytes)});
}

plan::Problem whole_problem(const Fit& fit, const FittedStep& fitted, const lower::Executable& step) {
  const plan::Problem& kept = fitted.problem;
  if (kept.ops.size() > 0) return kept;
  plan::Problem problem = step_problem(step, fit.map, fit.pool->rule(fit.given_bytes), kept.boundary);
  problem.budget_bytes = kept.budget_bytes;
  problem.tier_bytes = kept.tier_bytes;
  for (std::size_t s = 0; s < problem.storages.size() && fitted.swaps_only_placed; ++s) {
    if (fit.map.extent[s] < 0) problem.storages[s].swappable = false;
  }
  return problem;
}

}  // namespace

double judged_seconds(const Fit& fit) {
  return fit.predicted_seconds() * fit.pool->slowdown();
}

LongVector<const lower::Executable*> Steps::all() const {
  LongVector<const lower::Executable*> steps;
  if (training != nullptr) steps.push_back(training);
  if (evaluation != nullptr) steps.push_back(evaluation);
  return steps;
}

std::int64_t place_plans(Fit& fit, std::span<const std::int64_t> fixed) {
  LongVector<FittedStep*> fitted;
  LongVector<plan::SolvedProblem> solved;
  for (std::optional<FittedStep>* step : {&fit.training, &fit.evaluation}) {
    if (!*step) continue;
    fitted.push_back(&**step);
    solved.push_back({&(*step)->problem, &(*step)->plan});
  }
  const plan::TierPlaces places = plan::place_on_tier(solved, fixed);
  for (FittedStep* step : fitted) {
    step->plan.places = places.offsets;
    step->problem.tier_bytes = std::max(step->problem.tier_bytes, places.bytes);
    plan::prove(step->problem, step->plan);
  }
  return places.bytes;
}

void predict(const Steps& steps, Fit& fit, const plan::Profile& profile) {
  std::optional<plan::Problem> anew;
  if (fit.training->problem.ops.size() == 0) anew = training_problem(steps, fit);
  const plan::Problem& problem = anew ? *anew : fit.training->problem;
  fit.profile = fit.pool->with_moves(profile, {steps.training, &problem, &fit.training->plan}, fit.size);
  fit.prediction = plan::simulate(problem, fit.training->plan, *fit.profile);
}

void shed_problems(Fit& fit) {
  for (std::optional<FittedStep>* step : {&fit.training, &fit.evaluation}) {
    if (!*step) continue;
    (*step)->problem.storages = LongVector<plan::StorageInfo>();  // {} would keep its memory
    (*step)->problem.ops = {};
    (*step)->problem.accesses = {};
  }
}

void restore_problems(const Steps& steps, Fit& fit) {
  if (fit.training) fit.training->problem = whole_problem(fit, *fit.training, *steps.training);
  if (fit.evaluation) fit.evaluation->problem = whole_problem(fit, *fit.evaluation, *steps.evaluation);
}

plan::Problem training_problem(const Steps& steps, const Fit& fit) {
  return whole_problem(fit, *fit.training, *steps.training);
}

std::int64_t limit_that_counts(const Steps& steps, std::int64_t tier_bytes) {
  if (tier_bytes == plan::kNoLimit) return tier_bytes;
  const StorageMap map = map_slots(steps.all());
  std::int64_t all = 0;
  for (const std::int64_t bytes : map.storage_bytes()) all += plan::place_bytes(bytes);
  return tier_bytes >= all ? plan::kNoLimit : tier_bytes;
}

Fit first_fit(const Steps& steps, const Request& request) {
  if (!request.policy) {
    if (std::optional<Fit> keep = keep_fit(steps, request)) return std::move(*keep);
  }
  const PolicyKind policy = request.policy.value_or(PolicyKind::automatic);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const PoolKind kind : pools_of(request)) {
    PoolFitter fitter(steps, request, kind);
    if (std::optional<Fit> fit = some_fit(fitter, policy, request)) {
      fit->policy = policy;
      return std::move(*fit);
    }
    least = std::min(least, fitter.least_bytes());
  }
  refuse(steps, policy, least, request);
}

Fit best_fit(const Steps& steps, const Request& request, const plan::Profile* profile) {
  if (!request.policy) {
    if (std::optional<Fit> keep = keep_fit(steps, request)) {
      if (profile != nullptr && keep->training) predict(steps, *keep, *profile);
      return std::move(*keep);
    }
  }
  const PolicyKind policy = request.policy.value_or(PolicyKind::automatic);
  std::vector<InPool> found;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const PoolKind kind : pools_of(request)) {
    PoolFitter fitter(steps, request, kind);
    std::optional<Fit> some = some_fit(fitter, policy, request);
    least = std::min(least, fitter.least_bytes());
    if (!some) continue;
    // Others are planned beside it, which takes memory enough; problems can be made anew.
    shed_problems(*some);
    found.push_back({kind, best_in_pool(fitter, policy, request, profile, *some)});
    shed_problems(found.back().fit);
    if (profile == nullptr || hardly_worse_than_compute(found.back().fit)) break;
  }
  if (found.empty()) refuse(steps, policy, least, request);
  Fit best = profile == nullptr ? std::move(found.front().fit) : best_of(steps, request, *profile, found);
  restore_problems(steps, best);
  return best;
}

bool wants_profile(const Steps& steps, const Fit& first) {
  if (steps.training == nullptr) return false;
  return first.policy != PolicyKind::keep || !steps.training->variants.empty();
}

Fit refit(const Steps& steps, const Fit& now, const plan::Profile& profile) {
  Fit fit = now;
  restore_problems(steps, fit);
  plan::Problem& problem = fit.training->problem;
  fit.training->swaps_only_placed = true;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    if (now.map.extent[s] < 0) problem.storages[s].swappable = false;
  }
  problem.tier_bytes = now.map.tier_bytes;
  plan::PlanOptions options;
  options.policy = PolicyKind::automatic;
  const bool is_worth_seconds = is_worth_searching(now);
  options.profile = &profile;
  options.dynamic_kernels = !steps.training->variants.empty();
  LongVector<std::int64_t> fixed(now.map.slot_bytes.size(), kAnywhere);
  for (const plan::Standing& state : now.training->plan.boundary) {
    const auto slot = static_cast<std::size_t>(state.storage);
    if (state.resident) fixed[slot] = now.training->plan.homes[slot];
  }
  plan::Plan plan;
  const PlannedStep planned{steps.training, &problem, &plan};
  // Another plan leaves other gaps: where they are too many, it is given less.
  for (int i = 0;; ++i) {
    options.effort = is_worth_seconds && i < kThoroughRefits ? plan::Effort::thorough : plan::Effort::usual;
    plan = plan::make_plan(problem, options);
    Layout layout = now.pool->lay_out({&planned, 1}, fixed);
    plan.offsets = std::move(layout.offsets.front());
    plan.homes = std::move(layout.homes);
    if (now.size.holds(layout.size)) break;
    if (i == kRefitTries) throw plan::BudgetError(plan.policy, layout.size.pool_bytes, now.pool_bytes());
    problem.budget_bytes = static_cast<std::int64_t>(static_cast<double>(problem.budget_bytes) *
                                                     share_that_fits(now.size, layout.size) * 0.99);
  }
  const std::string wrong = check_offsets(now.map, {&planned, 1}, now.size, now.pool->grain_bytes());
  require(wrong.empty(), wrong.c_str());
  fit.training->plan = std::move(plan);
  place_again(fit);
  predict(steps, fit, profile);
  return fit;
}

std::int64_t in_memory_bytes(const Steps& steps, const Request& request) {
  const PoolKind kind = request.pool.value_or(PoolKind::paged);
  return PoolFitter(steps, request, kind).keep_bytes() + request.division.beside_bytes();
}

}  // namespace penstock::fit
