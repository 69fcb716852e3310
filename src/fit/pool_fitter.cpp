#include "fit/pool_fitter.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "fit/offset_check.h"
#include "fit/step_problem.h"
#include "plan/budget_error.h"
#include "plan/estimate.h"

namespace penstock::fit {
namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 50;
/// Rounding of the smallest pools, in pages of 4 KiB.
constexpr std::int64_t kFinestRounding = kMiB;
/// Rounding in huge pages, which then stay whole: kernels, transfers and moves are faster on them. Pools from
/// this size on have room for what that takes more.
constexpr std::int64_t kHugeRounding = std::int64_t{32} << 30, kHugePool = 256 * kMiB;
/// No storage takes so many times its size by rounding alone: slots up to a quarter of the grain are packed.
constexpr std::int64_t kMostRounded = 8;
/// What a policy is given next where the gaps of a layout were too many: so much more, so often.
constexpr std::int64_t kGivenStep = 32;
constexpr int kGivenTries = 24;
/// How often the first step is planned for less space on the tier, so that the next one has enough.
constexpr int kSpaceRounds = 2;
/// How often computing again is given less, where gaps take too much of the rest, and how much less at least.
constexpr int kComputingTries = 4;
constexpr double kLessEachTime = 0.95;
/// A layout takes about as much more than was given as one that was given a little less.
constexpr double kLittleLess = 0.99;
/// How often a policy plans for a pool that leaves gaps.
constexpr int kFullestTries = 6;
/// So often at least: where the first plan takes too much there is a second one, for less.
constexpr int kFewestTries = 2;
/// So many more where none has fitted yet.
constexpr int kMoreTries = 2;
/// How often a search that takes its time is made.
constexpr int kThoroughTries = 3;

/// The profile, with as much moving of memory as another plan for the same pool has.
plan::Profile moving_as(plan::Profile profile, const Fit& other) {
  if (!other.profile) return profile;
  profile.host.moves_each = other.profile->host.moves_each;
  profile.host.moved_share = other.profile->host.moved_share;
  return profile;
}

}  // namespace

PoolFitter::PoolFitter(const Steps& steps, const Request& request, PoolKind kind)
    : steps_(steps), request_(request), kind_(kind), map_(map_slots(steps.all())) {
  keep_bytes_ = find_keep_bytes();
}

std::shared_ptr<const PoolModel> PoolFitter::model(std::int64_t rounding_bytes) const {
  return kind_ == PoolKind::packed ? make_packed_model(map_) : make_virtual_model(map_, rounding_bytes);
}

std::int64_t PoolFitter::find_keep_bytes() const {
  std::int64_t bytes = std::accumulate(map_.slot_bytes.begin(), map_.slot_bytes.end(), std::int64_t{0});
  // How a pool rounds depends on its size, which depends on how it rounds.
  for (int round = 0; round < 3; ++round) {
    const plan::PoolRule rule = model(bytes)->rule(kUnlimited);
    std::int64_t next = 0;
    for (const lower::Executable* step : steps_.all()) {
      const plan::Problem problem = step_problem(*step, map_, rule);
      next = std::max(next, plan::keep_bytes(problem) + problem.fixed_bytes);
    }
    bytes = next;
    if (kind_ == PoolKind::packed) break;
  }
  return bytes;
}

std::optional<plan::Profile> PoolFitter::profile_of(const lower::Executable& step,
                                                    const plan::Problem& problem,
                                                    const plan::PlanOptions& options,
                                                    const plan::Profile* profile) const {
  if (!options.dynamic_kernels && !plan::policy_needs_profile(options.policy)) return std::nullopt;
  if (profile != nullptr && &step == steps_.training) return *profile;
  // Evaluation is not measured: its times are estimated, with the tier as it is.
  plan::MachineEstimate machine;
  if (profile != nullptr) machine.tier = profile->tier;
  return plan::estimate_profile(problem, machine);
}

plan::PlanOptions PoolFitter::plan_options(plan::PolicyKind policy) const {
  plan::PlanOptions options;
  options.policy = policy;
  options.lms = request_.lms;
  options.window = request_.window;
  options.dynamic_kernels = steps_.training != nullptr && !steps_.training->variants.empty();
  return options;
}

LongVector<PlannedStep> PoolFitter::plan_steps(Fit& fit, const plan::Profile* profile, plan::Effort effort,
                                               std::int64_t first_tier_bytes) const {
  plan::PlanOptions options = plan_options(fit.policy);
  options.effort = effort;
  plan::PoolRule rule = fit.pool->rule(fit.given_bytes);
  rule.tier_bytes = first_tier_bytes;
  std::optional<plan::Boundary> boundary;
  LongVector<PlannedStep> planned;
  for (const lower::Executable* step : steps_.all()) {
    plan::Problem problem = step_problem(*step, map_, rule, boundary);
    const std::optional<plan::Profile> times = profile_of(*step, problem, options, profile);
    options.profile = times ? &*times : nullptr;
    try {
      plan::Plan plan = plan::make_plan(problem, options);
      boundary = plan::settled(plan.boundary);
      std::optional<FittedStep>& fitted = step == steps_.training ? fit.training : fit.evaluation;
      fitted = FittedStep{std::move(problem), std::move(plan)};
      planned.push_back({step, &fitted->problem, &fitted->plan});
    } catch (const plan::BudgetError& error) {
      throw plan::BudgetError(error.policy(), error.needed_bytes() + problem.fixed_bytes, fit.given_bytes,
                              error.needed_tier_bytes());
    }
    if (request_.tier_bytes == plan::kNoLimit) continue;
    // State keeps its place on the tier while the next step runs; a given boundary counts what stands there.
    rule.tier_bytes = request_.tier_bytes;
    for (const plan::Standing& standing : *boundary) {
      const bool has_place = planned.back().plan->places[static_cast<std::size_t>(standing.storage)] >= 0;
      if (has_place && !standing.on_tier)
        rule.tier_bytes -= plan::place_bytes(planned.back().problem->storage(standing.storage).size_bytes);
    }
    rule.tier_bytes = std::max<std::int64_t>(0, rule.tier_bytes);
  }
  return planned;
}

LongVector<PlannedStep> PoolFitter::plan_steps(Fit& fit, const plan::Profile* profile,
                                               plan::Effort effort) const {
  std::int64_t first_bytes = request_.tier_bytes;
  for (int round = 0;; ++round) {
    try {
      LongVector<PlannedStep> planned = plan_steps(fit, profile, effort, first_bytes);
      const std::int64_t taken =
          planned.size() > 1 ? place_plans(fit) : planned.front().plan->summary.tier_bytes;
      if (taken <= request_.tier_bytes) return planned;
      if (round == kSpaceRounds)
        throw plan::BudgetError(plan::policy_name(fit.policy), fit.given_bytes + 1, fit.given_bytes, taken);
      first_bytes -= taken - request_.tier_bytes;
    } catch (const plan::BudgetError& error) {
      const bool first_took_too_much = fit.training && steps_.all().size() > 1;
      first_bytes = request_.tier_bytes - error.needed_tier_bytes();
      if (error.needed_tier_bytes() == 0 || !first_took_too_much || round > 0) throw;
    }
    if (first_bytes < 0)
      throw plan::BudgetError(plan::policy_name(fit.policy), fit.given_bytes + 1, fit.given_bytes, 0);
    fit.training.reset();
    fit.evaluation.reset();
  }
}

Fit PoolFitter::fit(plan::PolicyKind policy, const std::shared_ptr<const PoolModel>& model,
                    std::int64_t given_bytes, const plan::Profile* profile, plan::Effort effort) const {
  Fit fit;
  fit.division = request_.division;
  fit.policy = policy;
  fit.pool = model;
  fit.given_bytes = given_bytes;
  fit.in_memory_bytes = keep_bytes_ + request_.division.beside_bytes();
  const LongVector<PlannedStep> planned = plan_steps(fit, profile, effort);
  Layout layout = model->lay_out(planned, {});
  fit.size = layout.size;
  std::size_t next = 0;
  for (std::optional<FittedStep>* step : {&fit.training, &fit.evaluation}) {
    if (!*step) continue;
    (*step)->plan.offsets = std::move(layout.offsets[next++]);
    (*step)->plan.homes = layout.homes;
  }
  const std::string wrong = check_offsets(map_, planned, fit.size, model->grain_bytes());
  require(wrong.empty(), wrong.c_str());
  fit.map = map_;
  LongVector<const plan::Plan*> plans;
  for (const PlannedStep& step : planned) plans.push_back(step.plan);
  map_extents(fit.map, plans);
  if (profile != nullptr && fit.training) predict(steps_, fit, *profile);
  return fit;
}

std::int64_t PoolFitter::least_given(plan::PolicyKind policy, const PoolModel& model) const {
  std::int64_t least = 1;
  for (const lower::Executable* step : steps_.all()) {
    plan::PoolRule rule = model.rule(0);
    if (policy != plan::PolicyKind::window) rule.tier_bytes = request_.tier_bytes;
    const plan::Problem problem = step_problem(*step, map_, rule);
    plan::PlanOptions options = plan_options(policy);
    const std::optional<plan::Profile> times = profile_of(*step, problem, options, nullptr);
    options.profile = times ? &*times : nullptr;
    const std::int64_t bytes = policy == plan::PolicyKind::window ? plan::smallest_bytes(problem)
                               : policy == plan::PolicyKind::keep ? plan::keep_bytes(problem)
                                                                  : plan::smallest_budget(problem, options);
    least = std::max(least, bytes + problem.fixed_bytes);
  }
  return least;
}

std::optional<Fit> PoolFitter::any(plan::PolicyKind policy, std::int64_t capacity_bytes) {
  // What is tried does not depend on the capacity, so whatever fits one capacity fits all above it. A virtual
  // pool that rounds coarsely has fewer and larger moves: it is tried first, the finest rounding last.
  least_bytes_ = std::numeric_limits<std::int64_t>::max();
  const std::int64_t coarsest =
      std::clamp(capacity_bytes, kFinestRounding, std::max(keep_bytes_, kFinestRounding));
  for (std::int64_t rounding = coarsest;; rounding = std::max(rounding / 4, kFinestRounding)) {
    const std::shared_ptr<const PoolModel> pool = model(rounding);
    std::int64_t given = least_given(policy, *pool);
    const int tries = tries_of(kGivenTries);
    for (int i = 0; i < tries; ++i, given += given / kGivenStep * (kGivenTries / tries)) {
      try {
        Fit found = fit(policy, pool, given, nullptr);
        if (found.pool_bytes() <= capacity_bytes) return found;
        least_bytes_ = std::min(least_bytes_, found.pool_bytes());
        // The gaps of a virtual pool are addresses, and what is given has no part in them.
        if (found.pool_bytes() <= given || kind_ == PoolKind::paged || policy == plan::PolicyKind::keep)
          break;
      } catch (const plan::BudgetError& error) {
        given = std::max(given, error.needed_bytes());
      }
    }
    if (kind_ == PoolKind::packed || rounding == kFinestRounding) break;
    // Too little space on the tier may ask for many times the memory, which no rounding makes up for.
    if (least_bytes_ / kMostRounded > capacity_bytes && least_bytes_ < kUnlimited) break;
  }
  // With little space on the tier none may have been found; all in memory needs none.
  if (least_bytes_ == std::numeric_limits<std::int64_t>::max())
    least_bytes_ = fit(plan::PolicyKind::keep, model(keep_bytes_), keep_bytes_, nullptr).pool_bytes();
  return std::nullopt;
}

std::optional<Fit> PoolFitter::computing_again(std::int64_t capacity_bytes) const {
  const std::shared_ptr<const PoolModel> pool =
      model(std::clamp(capacity_bytes, kFinestRounding, std::max(keep_bytes_, kFinestRounding)));
  if (capacity_bytes < least_given(plan::PolicyKind::window, *pool)) return std::nullopt;
  auto given = static_cast<double>(capacity_bytes);
  for (int i = 0; i < kComputingTries; ++i) {
    try {
      Fit found = fit(plan::PolicyKind::automatic, pool, static_cast<std::int64_t>(given), nullptr,
                      plan::Effort::any);
      if (found.pool_bytes() <= capacity_bytes) return found;
      const double share = static_cast<double>(capacity_bytes) / static_cast<double>(found.pool_bytes());
      // The gaps of a virtual pool are addresses: it takes hardly more than was given.
      given *= std::min(kind_ == PoolKind::packed ? kLessEachTime : 1, kLittleLess * share);
    } catch (const plan::BudgetError&) {
      // With less it would not do either.
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<Fit> PoolFitter::thorough(std::int64_t capacity_bytes, const plan::Profile& profile,
                                        const Fit& found) const {
  const plan::Profile times = moving_as(profile, found);
  auto given = static_cast<double>(found.given_bytes);
  try {
    // Other plans leave other gaps: where they are too many, it is given less.
    for (int i = 0; i < kThoroughTries; ++i) {
      Fit fit = this->fit(plan::PolicyKind::automatic, found.pool, static_cast<std::int64_t>(given), &times,
                          plan::Effort::thorough);
      if (fit.predicted_seconds() >= found.predicted_seconds()) break;
      if (fit.pool_bytes() <= capacity_bytes) return fit;
      given *= kLittleLess * static_cast<double>(capacity_bytes) / static_cast<double>(fit.pool_bytes());
    }
  } catch (const plan::BudgetError&) {
    // Another policy's plan may be all that there is for so little.
  }
  return std::nullopt;
}

int PoolFitter::tries_of(int most) const {
  constexpr std::int64_t kOps = 20000;
  std::int64_t ops = 1;
  for (const lower::Executable* step : steps_.all()) ops += static_cast<std::int64_t>(step->graph.ops.size());
  return static_cast<int>(std::clamp<std::int64_t>(kOps / ops, std::min(most, kFewestTries), most));
}

Fit PoolFitter::fullest(plan::PolicyKind policy, std::int64_t capacity_bytes, const plan::Profile* profile,
                        const Fit& fallback) {
  std::optional<Fit> huge;
  if (kind_ == PoolKind::paged && capacity_bytes >= kHugePool && profile != nullptr) {
    huge = fullest_of(model(kHugeRounding), policy, capacity_bytes, profile, fallback);
    const bool planning_takes_long = tries_of(kFullestTries) == kFewestTries;
    if (huge && planning_takes_long) return std::move(*huge);
  }
  std::optional<Fit> fine =
      fullest_of(model(std::min(capacity_bytes, keep_bytes_)), policy, capacity_bytes, profile, fallback);
  if (huge && (!fine || judged_seconds(*huge) <= judged_seconds(*fine))) return std::move(*huge);
  if (fine) return std::move(*fine);
  Fit last = fallback;
  if (profile != nullptr && last.training) predict(steps_, last, *profile);
  return last;
}

std::optional<Fit> PoolFitter::fullest_of(const std::shared_ptr<const PoolModel>& pool,
                                          plan::PolicyKind policy, std::int64_t capacity_bytes,
                                          const plan::Profile* profile, const Fit& fallback) const {
  std::optional<plan::Profile> times;
  if (profile != nullptr) times = moving_as(*profile, fallback);
  std::optional<Fit> best;
  std::int64_t too_much = capacity_bytes + 1, too_little = 0;
  const std::int64_t step_bytes = capacity_bytes / 32;
  const bool slow = policy == plan::PolicyKind::automatic || policy == plan::PolicyKind::pooch;
  const int tries = slow ? tries_of(kFullestTries) : kFullestTries;
  // The gaps that another plan left are a guess at those that this one will leave.
  std::int64_t given = capacity_bytes;
  if (fallback.pool_bytes() > fallback.given_bytes && policy != plan::PolicyKind::keep) {
    double share = static_cast<double>(fallback.given_bytes) / static_cast<double>(fallback.pool_bytes());
    if (tries == kFewestTries)
      share *= kLittleLess;  // A plan that does not fit costs more than a little room.
    given = static_cast<std::int64_t>(static_cast<double>(capacity_bytes) * share);
  }
  // What is found at all may be much faster than the fallback, so it is worth more tries than what is better.
  for (int i = 0; i < (best ? tries : tries + kMoreTries) && given > too_little && given < too_much; ++i) {
    std::int64_t next = 0;
    try {
      Fit found = fit(policy, pool, given, times ? &*times : nullptr);
      const double share = static_cast<double>(capacity_bytes) / static_cast<double>(found.pool_bytes());
      next = static_cast<std::int64_t>(static_cast<double>(given) * share * kLittleLess);
      if (found.pool_bytes() <= capacity_bytes) {
        too_little = given;
        best = std::move(found);
        shed_problems(*best);
        if (next < given + step_bytes || tries == kFewestTries) break;
      } else {
        if (best) break;
        too_much = given;
      }
    } catch (const plan::BudgetError&) {
      too_little = given;
    }
    if (too_much - too_little <= step_bytes) break;
    given = next > too_little && next < too_much ? next : (too_little + too_much) / 2;
  }
  return best;
}

}  // namespace penstock::fit
