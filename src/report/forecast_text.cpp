#include "report/forecast_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace penstock::report {
namespace {

/// What a usual solid-state drive of 1 TB is warranted for.
constexpr double kDriveBytes = 600e12;

std::string lifetime(double bytes_per_day) {
  const double days = kDriveBytes / bytes_per_day;
  if (days < 60) return fmt::format("{:.0f} days", days);
  if (days < 730) return fmt::format("{:.0f} months", days / 30.4);
  return fmt::format("{:.0f} years", days / 365);
}

std::string distance(const Forecast& row) {
  if (row.bound_seconds <= 0) return "";
  return fmt::format("{:.1f} %", 100 * std::max(0.0, row.step.step_seconds / row.bound_seconds - 1));
}

double rate(const Forecast& row, std::int64_t batch) {
  return row.step.step_seconds > 0 ? static_cast<double>(batch) / row.step.step_seconds : 0;
}

}  // namespace

std::string forecast_text(const Forecast& row, const std::string& network, std::int64_t batch,
                          std::int64_t tokens) {
  const char* who = row.scope == BudgetScope::process ? "the whole process" : "the session";
  std::string text = fmt::format(
      "within {} for {}: policy {}, peak {} ({} of tensors, {} for program, buffers and margin)\n",
      format_bytes(row.budget_bytes), who, row.policy, format_bytes(row.peak_bytes()),
      format_bytes(row.pool_bytes), format_bytes(row.overhead_bytes()));
  if (row.step.step_seconds > 0) {
    text += fmt::format("speed: {} batch {} at {}", network, batch,
                        tokens > 0 ? fmt::format("{:.1f} tokens/s", rate(row, batch * tokens))
                                   : fmt::format("{:.2f} a second", rate(row, batch)));
    if (row.in_memory_share > 0) text += fmt::format(", {:.1f} % of in memory", 100 * row.in_memory_share);
    text += fmt::format(
        "; a step takes {:.3f} s: {:.3f} s in kernels ({:.3f} s of it again), {:.3f} s waiting for the "
        "tier\n",
        row.step.step_seconds, row.step.compute_seconds, row.step.recompute_seconds, row.step.stall_seconds);
  } else {
    text += fmt::format("speed: {} batch {} was not measured\n", network, batch);
  }
  if (row.bound_seconds > 0)
    text += fmt::format("bound: no plan takes less than {:.3f} s; this one is {} above\n", row.bound_seconds,
                        distance(row));
  if (row.step.swapped_out_bytes + row.step.swapped_in_bytes == 0) return text + "tier: nothing is swapped\n";
  text +=
      fmt::format("tier: {} out and {} in per step, {} of space\n", format_bytes(row.step.swapped_out_bytes),
                  format_bytes(row.step.swapped_in_bytes), format_bytes(row.swap_file_bytes));
  if (row.written_bytes_per_day > 0)
    text += fmt::format("wear: {:.2f} TB written per day of training; a drive of 600 TBW bears {} of that\n",
                        row.written_bytes_per_day / 1e12, lifetime(row.written_bytes_per_day));
  return text;
}

std::string forecast_table(const ForecastTable& table, std::int64_t batch, std::int64_t tokens) {
  std::string text = fmt::format("{:>10}  {:<12} {:>10}  {:>8}  {:>9}  {:>10}  {:>10}  {:>10}  {:>8}\n",
                                 "budget", "policy", "pool", tokens > 0 ? "tokens/s" : "a second",
                                 "of memory", "out/step", "in/step", "disk", "to bound");
  for (const Forecast& row : table.budgets) {
    if (!row.feasible) {
      text += fmt::format("{:>10}  does not fit\n", format_bytes(row.budget_bytes));
      continue;
    }
    text += fmt::format("{:>10}  {:<12} {:>10}  {:>8.2f}  {:>7.1f} %  {:>10}  {:>10}  {:>10}  {:>8}\n",
                        format_bytes(row.budget_bytes), row.policy, format_bytes(row.pool_bytes),
                        rate(row, tokens > 0 ? batch * tokens : batch), 100 * row.in_memory_share,
                        format_bytes(row.step.swapped_out_bytes), format_bytes(row.step.swapped_in_bytes),
                        format_bytes(row.swap_file_bytes), distance(row));
  }
  return text;
}

}  // namespace penstock::report
