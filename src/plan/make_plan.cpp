#include "plan/make_plan.h"

#include <limits>

#include "base/error.h"
#include "base/long_vector.h"
#include "plan/auto.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/tier_places.h"
#include "plan/tier_space.h"
#include "plan/variants.h"

namespace penstock::plan {

const char* policy_name(PolicyKind policy) {
  switch (policy) {
    case PolicyKind::keep:
      return "keep";
    case PolicyKind::lms:
      return "lms";
    case PolicyKind::superneurons:
      return "superneurons";
    case PolicyKind::pooch:
      return "pooch";
    case PolicyKind::window:
      return "window";
    case PolicyKind::automatic:
      return "auto";
  }
  return "?";
}

LongVector<PolicyKind> all_policies() {
  return {PolicyKind::keep,  PolicyKind::lms,    PolicyKind::superneurons,
          PolicyKind::pooch, PolicyKind::window, PolicyKind::automatic};
}

bool policy_needs_profile(PolicyKind policy) {
  return policy == PolicyKind::pooch || policy == PolicyKind::automatic;
}

PolicyKind parse_policy(std::string_view name) {
  std::string known;
  for (const PolicyKind policy : all_policies()) {
    if (name == policy_name(policy)) return policy;
    known += known.empty() ? "" : ", ";
    known += policy_name(policy);
  }
  throw UserError("unknown policy '" + std::string(name) + "'; there are " + known);
}

namespace {

constexpr int kAskedAttempts = 16;

/// How often fewer storages may be swapped.
constexpr int kSpaceRounds = 4;

/// A search over more ops than these is not made twice.
constexpr std::size_t kLongStep = 10000;

/// By the policy, whatever it takes on the tier; by `automatic` within what the problem has, where a plan is
/// given that is not.
Plan plan_by(const Problem& problem, const PlanOptions& options, bool below_smallest = false,
             const Plan* swapping = nullptr) {
  AutoOptions search;
  search.below_smallest = below_smallest;
  search.swapping = swapping;
  search.effort = options.effort;
  switch (options.policy) {
    case PolicyKind::keep:
      return plan_keep(problem);
    case PolicyKind::lms:
      return plan_lms(problem, options.lms);
    case PolicyKind::superneurons:
      return plan_superneurons(problem);
    case PolicyKind::pooch:
      return plan_pooch(problem, *options.profile);
    case PolicyKind::window:
      return plan_window(problem, options.window);
    case PolicyKind::automatic:
      return plan_auto(problem, *options.profile, search);
  }
  throw InternalError("there is no such policy");
}

/// Whatever it takes on the tier; where the step is long and the quickest policy takes more there than it
/// may, that one's plan. A long step is searched from that plan on, because for another way there are too few
/// plans, and so is any step that is searched thoroughly, because that way drops more.
Plan plan_unlimited(const Problem& problem, const PlanOptions& options) {
  Problem unlimited = problem;
  unlimited.tier_bytes = kNoLimit;
  const bool from_quick = options.effort == Effort::thorough || problem.ops.size() > kLongStep;
  const bool searches = options.policy == PolicyKind::automatic && from_quick;
  if (searches && smallest_bytes(unlimited) <= unlimited.budget_bytes) {
    Plan quick = plan_window(unlimited, options.window);
    if (tier_bytes(problem, quick) > problem.tier_bytes) return quick;
    if (options.effort != Effort::any) return plan_by(unlimited, options, false, &quick);
  }
  return plan_by(unlimited, options);
}

/// Gives all that the plan has on the tier a place there; returns what that takes.
std::int64_t give_places(const Problem& problem, Plan& plan) {
  const SolvedProblem solved{&problem, &plan};
  TierPlaces places = place_on_tier({&solved, 1});
  plan.places = std::move(places.offsets);
  return places.bytes;
}

/// Fewer and fewer storages may be swapped until the plan's places keep the limit: places leave gaps, and
/// another plan has its values on the tier at other times.
Plan plan_within_tier(const Problem& problem, const PlanOptions& options) {
  const Plan any = plan_unlimited(problem, options);
  Plan plan = any;
  const std::int64_t wanted = give_places(problem, plan);
  std::int64_t taken = wanted, space_bytes = problem.tier_bytes;
  if (taken > problem.tier_bytes && options.policy == PolicyKind::automatic) {
    try {
      return plan_by(problem, options, true, &any);
    } catch (const BudgetError& error) {
      if (problem.ops.size() > kLongStep)
        throw BudgetError(error.policy(), error.needed_bytes(), error.given_bytes(), wanted);
    }
  }
  for (int round = 0; round < kSpaceRounds && taken > problem.tier_bytes; ++round) {
    try {
      plan = plan_by(within_tier(problem, any, space_bytes), options, true);
    } catch (const BudgetError& error) {
      throw BudgetError(error.policy(), error.needed_bytes(), error.given_bytes(), wanted);
    }
    taken = give_places(problem, plan);
    space_bytes = std::max<std::int64_t>(0, space_bytes - (taken - problem.tier_bytes));
  }
  if (taken > problem.tier_bytes)
    throw BudgetError(plan.policy, problem.budget_bytes + 1, problem.budget_bytes, wanted);
  return plan;
}

}  // namespace

Plan make_plan(const Problem& problem, const PlanOptions& options) {
  const bool needs_profile = options.dynamic_kernels || policy_needs_profile(options.policy);
  require(options.profile != nullptr || !needs_profile, "the policy needs a profile");
  Plan plan =
      problem.tier_bytes == kNoLimit ? plan_unlimited(problem, options) : plan_within_tier(problem, options);
  if (options.dynamic_kernels) pick_variants(problem, *options.profile, plan);
  // It is there as long as steps run: no room is left for more.
  plan.instructions.shrink_to_fit();
  if (plan.places.empty()) give_places(problem, plan);
  prove(problem, plan);
  return plan;
}

std::int64_t smallest_budget(const Problem& problem, const PlanOptions& options) {
  Problem tight = problem;
  tight.budget_bytes = 0;
  // A policy that refuses says what it needs.
  for (int attempt = 0; attempt < 64; ++attempt) {
    try {
      make_plan(tight, options);
      return tight.budget_bytes;
    } catch (const BudgetError& error) {
      require(error.needed_bytes() > tight.budget_bytes, "a policy refuses a budget that it asked for");
      // With little space on the tier, what is needed changes with what is given.
      const std::int64_t more = attempt < kAskedAttempts ? 0 : tight.budget_bytes / 8;
      tight.budget_bytes = std::max(error.needed_bytes(), tight.budget_bytes + more);
    }
  }
  throw InternalError("a policy never says what budget it needs");
}

}  // namespace penstock::plan
