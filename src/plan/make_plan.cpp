#include "plan/make_plan.h"

#include <limits>

#include "base/error.h"
#include "plan/auto.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
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

std::vector<PolicyKind> all_policies() {
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

Plan make_plan(const Problem& problem, const PlanOptions& options) {
  const bool needs_profile = options.dynamic_kernels || policy_needs_profile(options.policy);
  require(options.profile != nullptr || !needs_profile, "the policy needs a profile");
  Plan plan;
  switch (options.policy) {
    case PolicyKind::keep:
      plan = plan_keep(problem);
      break;
    case PolicyKind::lms:
      plan = plan_lms(problem, options.lms);
      break;
    case PolicyKind::superneurons:
      plan = plan_superneurons(problem);
      break;
    case PolicyKind::pooch:
      plan = plan_pooch(problem, *options.profile);
      break;
    case PolicyKind::window:
      plan = plan_window(problem, options.window);
      break;
    case PolicyKind::automatic:
      plan = plan_auto(problem, *options.profile);
      break;
  }
  if (options.dynamic_kernels) pick_variants(problem, *options.profile, plan);
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
      tight.budget_bytes = error.needed_bytes();
    }
  }
  throw InternalError("a policy never says what budget it needs");
}

}  // namespace penstock::plan
