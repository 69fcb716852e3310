#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock::plan {

/// A policy cannot plan within the budget. The numbers are those of the Problem (what the pool has for
/// storages and scratch), for the caller to say it in the user's terms.
class BudgetError : public UserError {
 public:
  BudgetError(const std::string& policy, std::int64_t needed_bytes, std::int64_t given_bytes,
              std::int64_t needed_tier_bytes = 0)
      : UserError("policy '" + policy + "' needs " + format_bytes(needed_bytes) +
                  " for tensors and scratch (" + std::to_string(needed_bytes) +
                  " bytes), the budget leaves " + format_bytes(given_bytes) + " (" +
                  std::to_string(given_bytes) + " bytes)"),
        policy_(policy),
        needed_bytes_(needed_bytes),
        given_bytes_(given_bytes),
        needed_tier_bytes_(needed_tier_bytes) {}

  const std::string& policy() const { return policy_; }
  /// With this much the policy can plan.
  std::int64_t needed_bytes() const { return needed_bytes_; }
  std::int64_t given_bytes() const { return given_bytes_; }
  /// With so much space on the tier it can plan in the memory that it was given; 0: not by space alone.
  std::int64_t needed_tier_bytes() const { return needed_tier_bytes_; }

 private:
  std::string policy_;
  std::int64_t needed_bytes_;
  std::int64_t given_bytes_;
  std::int64_t needed_tier_bytes_;
};

}  // namespace penstock::plan
