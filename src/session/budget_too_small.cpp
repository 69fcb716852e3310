#include <fmt/format.h>

#include "base/bytes.h"
#include "penstock/errors.h"

namespace penstock {
namespace {

std::string text(const BudgetFacts& facts) {
  std::string line = fmt::format("{}; give {} MiB of memory or more", BudgetTooSmall::what_is_wrong(facts),
                                 facts.advised_bytes / kMiB);
  if (facts.needed_swap_bytes > 0)
    line += fmt::format(", or {} MiB of swap space", facts.needed_swap_bytes / kMiB + 1);
  if (facts.largest_batch > 0) line += fmt::format(", or a batch of {} or less", facts.largest_batch);
  if (facts.largest_batch == 0) line += ", or a smaller network: not even a batch of 1 fits";
  return line;
}

}  // namespace

std::string BudgetTooSmall::what_is_wrong(const BudgetFacts& facts) {
  std::string limits = format_bytes(facts.budget_bytes), needed = format_bytes(facts.needed_bytes);
  if (facts.needed_swap_bytes > 0) {
    limits += fmt::format(" and {} of swap space", format_bytes(facts.swap_space_bytes));
    needed += fmt::format(" of memory, or {} of swap space", format_bytes(facts.needed_swap_bytes));
  }
  return fmt::format("{} batch {} cannot {} within {}: policy {} needs at least {}", facts.network,
                     facts.batch, facts.training ? "train" : "run", limits, facts.policy, needed);
}

BudgetTooSmall::BudgetTooSmall(BudgetFacts facts) : UserError(text(facts)), facts_(std::move(facts)) {}

}  // namespace penstock
