#include <fmt/format.h>

#include "base/bytes.h"
#include "penstock/errors.h"

namespace penstock {
namespace {

std::string text(const BudgetFacts& facts) {
  std::string line = fmt::format("{}; give {} MiB of memory or more", BudgetTooSmall::what_is_wrong(facts),
                                 facts.advised_bytes / kMiB);
  if (facts.largest_batch > 0) line += fmt::format(", or a batch of {} or less", facts.largest_batch);
  if (facts.largest_batch == 0) line += ", or a smaller network: not even a batch of 1 fits";
  return line;
}

}  // namespace

std::string BudgetTooSmall::what_is_wrong(const BudgetFacts& facts) {
  return fmt::format("{} batch {} cannot {} within {}: policy {} needs at least {}", facts.network,
                     facts.batch, facts.training ? "train" : "run", format_bytes(facts.budget_bytes),
                     facts.policy, format_bytes(facts.needed_bytes));
}

BudgetTooSmall::BudgetTooSmall(BudgetFacts facts) : UserError(text(facts)), facts_(std::move(facts)) {}

}  // namespace penstock
