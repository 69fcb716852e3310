#pragma once

// What Penstock throws.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace penstock {

/// The user's fault: an option, a file, a budget. One line that says what is wrong, the numbers, and what to
/// do. The program ends with exit code 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A failure at run time that is nobody's input: disk full, I/O error. The program ends with exit code 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What is known of a budget that is too small.
struct BudgetFacts {
  std::string network, policy;
  std::int64_t batch = 0;
  bool training = true;  ///< otherwise it was to be evaluated only
  std::int64_t budget_bytes = 0;
  std::int64_t needed_bytes = 0;   ///< by this much memory, as it is just now
  std::int64_t advised_bytes = 0;  ///< to name as a budget: what differs from run to run is added
  /// Where too little space to swap is the reason: what there was, and with how much the budget would do.
  /// 0 needed: it is not the reason.
  std::int64_t swap_space_bytes = 0, needed_swap_bytes = 0;
  std::int64_t largest_batch = -1;  ///< that the budget can hold; 0: none, -1: not known
};

/// A network does not fit a memory budget.
class BudgetTooSmall : public UserError {
 public:
  explicit BudgetTooSmall(BudgetFacts facts);
  const BudgetFacts& facts() const { return facts_; }
  /// The first half of what(): what is wrong, not what to do.
  static std::string what_is_wrong(const BudgetFacts& facts);

 private:
  BudgetFacts facts_;
};

}  // namespace penstock
