#pragma once

#include <string_view>

#include "base/long_vector.h"
#include "penstock/options.h"
#include "plan/auto.h"
#include "plan/plan.h"
#include "plan/policies.h"
#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

using PolicyKind = Policy;

/// "keep", "lms", ...; throws UserError that lists them all.
PolicyKind parse_policy(std::string_view name);
const char* policy_name(PolicyKind policy);
LongVector<PolicyKind> all_policies();
bool policy_needs_profile(PolicyKind policy);

struct PlanOptions {
  PolicyKind policy = PolicyKind::window;
  const Profile* profile = nullptr;  ///< for the policies that know times (policy_needs_profile())
  /// Each op takes the fastest variant that fits where it runs (variants.h; needs the profile): the results'
  /// last bits then depend on the budget. Otherwise variant 0 throughout.
  bool dynamic_kernels = false;
  LmsOptions lms;
  WindowOptions window;
  Effort effort = Effort::usual;  ///< of a policy that searches
};

/// Plans by the policy and proves the plan. Throws BudgetError where the policy cannot plan within the
/// budget, or not with so little space on the tier. Where the space is limited, fewer storages may be
/// swapped.
Plan make_plan(const Problem& problem, const PlanOptions& options);

/// The smallest budget (Problem::budget_bytes) at which make_plan() succeeds. Whatever budget the problem has
/// is ignored.
std::int64_t smallest_budget(const Problem& problem, const PlanOptions& options);

}  // namespace penstock::plan
