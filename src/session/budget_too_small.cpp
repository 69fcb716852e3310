#include <fmt/format.h>

#include "base/bytes.h"
#include "penstock/errors.h"

namespace penstock {
namespace {

std::string text(const BudgetFacts& facts) {
  std::string line = fmt::format(
      "{} batch {} cannot {} within {}: policy {} needs at least {}; give {} MiB of memory or more",
      facts.network, facts.batch, facts.training ? "train" : "run", format_bytes(facts.budget_bytes),
      facts.policy, format_bytes(facts.needed_bytes), facts.advised_bytes / kMiB);
  if (facts.largest_batch > 0) line += fmt::format(", or a batch of {} or less", facts.largest_batch);
  if (facts.largest_batch == 0) line += ", or a smaller network: not even a batch of 1 fits";
  return line;
}

}  // namespace

BudgetTooSmall::BudgetTooSmall(BudgetFacts facts) : UserError(text(facts)), facts_(std::move(facts)) {}

}  // namespace penstock
