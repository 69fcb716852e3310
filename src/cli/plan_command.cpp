#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_options.h"

namespace penstock::cli {
namespace {

struct PlanCommand {
  RunOptions run;
  PlanRequest request;
};

/// What a usual solid-state drive of 1 TB is warranted for.
constexpr double kDriveBytes = 600e12;

std::string plan_json(const PlanResult& result) {
  nlohmann::ordered_json json;
  json["model"] = result.model;
  json["batch"] = result.batch;
  json["threads"] = result.threads;
  json["profile_source"] = result.profile_source;
  json["in_memory_bytes"] = result.in_memory_bytes;
  json["in_memory_step_seconds"] = result.in_memory_step_seconds;
  json["smallest_bytes"] = result.smallest_bytes;
  if (result.largest_batch > 0) json["largest_batch"] = result.largest_batch;
  json["budgets"] = nlohmann::ordered_json::array();
  for (const PlannedBudget& row : result.budgets) {
    nlohmann::ordered_json entry;
    entry["budget_bytes"] = row.budget_bytes;
    entry["feasible"] = row.feasible;
    if (row.feasible) {
      entry["policy"] = row.policy;
      entry["overhead_bytes"] = row.overhead_bytes;
      entry["planned_peak_bytes"] = row.planned_peak_bytes;
      entry["predicted_step_seconds"] = row.predicted_step_seconds;
      entry["compute_seconds"] = row.compute_seconds;
      entry["recompute_seconds"] = row.recompute_seconds;
      entry["stall_seconds"] = row.stall_seconds;
      entry["images_per_second"] = row.images_per_second;
      entry["in_memory_share"] = row.in_memory_share;
      entry["bound_seconds"] = row.bound_seconds;
      entry["swapped_out_bytes"] = row.swapped_out_bytes;
      entry["swapped_in_bytes"] = row.swapped_in_bytes;
      entry["swap_file_bytes"] = row.swap_file_bytes;
      entry["written_bytes_per_day"] = row.written_bytes_per_day;
    }
    json["budgets"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

std::string lifetime(double bytes_per_day) {
  const double days = kDriveBytes / bytes_per_day;
  if (days < 60) return fmt::format("{:.0f} days", days);
  if (days < 730) return fmt::format("{:.0f} months", days / 30.4);
  return fmt::format("{:.0f} years", days / 365);
}

std::string distance(const PlannedBudget& row) {
  if (row.bound_seconds <= 0) return "";
  return fmt::format("{:.1f} %", 100 * std::max(0.0, row.predicted_step_seconds / row.bound_seconds - 1));
}

void print_table(const PlanResult& result) {
  fmt::print("{:>10}  {:<12} {:>10}  {:>8}  {:>9}  {:>10}  {:>10}  {:>10}  {:>8}\n", "budget", "policy",
             "pool", "images/s", "of memory", "out/step", "in/step", "disk", "to bound");
  for (const PlannedBudget& row : result.budgets) {
    if (!row.feasible) {
      fmt::print("{:>10}  does not fit\n", format_bytes(row.budget_bytes));
      continue;
    }
    fmt::print("{:>10}  {:<12} {:>10}  {:>8.2f}  {:>7.1f} %  {:>10}  {:>10}  {:>10}  {:>8}\n",
               format_bytes(row.budget_bytes), row.policy, format_bytes(row.planned_peak_bytes),
               row.images_per_second, 100 * row.in_memory_share, format_bytes(row.swapped_out_bytes),
               format_bytes(row.swapped_in_bytes), format_bytes(row.swap_file_bytes), distance(row));
  }
}

void print_budget(const PlannedBudget& row) {
  fmt::print("within {}: policy {}, peak {} ({} of tensors, {} for program, loader and margin)\n",
             format_bytes(row.budget_bytes), row.policy,
             format_bytes(row.planned_peak_bytes + row.overhead_bytes), format_bytes(row.planned_peak_bytes),
             format_bytes(row.overhead_bytes));
  fmt::print(
      "speed: {:.2f} images/s, {:.1f} % of in memory; a step takes {:.3f} s: {:.3f} s in kernels ({:.3f} s "
      "of it again), {:.3f} "
      "s waiting for the tier\n",
      row.images_per_second, 100 * row.in_memory_share, row.predicted_step_seconds, row.compute_seconds,
      row.recompute_seconds, row.stall_seconds);
  if (row.bound_seconds > 0) {
    fmt::print("bound: no plan takes less than {:.3f} s; this one is {} above\n", row.bound_seconds,
               distance(row));
  }
  if (row.swapped_out_bytes + row.swapped_in_bytes == 0) {
    fmt::print("tier: nothing is swapped\n");
    return;
  }
  fmt::print("tier: {} out and {} in per step, {} of space\n", format_bytes(row.swapped_out_bytes),
             format_bytes(row.swapped_in_bytes), format_bytes(row.swap_file_bytes));
  if (row.swapped_out_bytes > 0) {
    fmt::print("wear: {:.2f} TB written per day of training; a drive of 600 TBW bears {} of that\n",
               row.written_bytes_per_day / 1e12, lifetime(row.written_bytes_per_day));
  }
}

void print_result(const PlanCommand& command, const PlanResult& result) {
  const double in_memory_rate = result.in_memory_step_seconds > 0
                                    ? static_cast<double>(result.batch) / result.in_memory_step_seconds
                                    : 0;
  fmt::print("{} batch {}: {} in memory at {:.2f} images/s; the smallest budget is {}\n", result.model,
             result.batch, format_bytes(result.in_memory_bytes), in_memory_rate,
             format_bytes(result.smallest_bytes));
  if (result.profile_source == "estimate") {
    fmt::print(
        "times are estimated from shapes: nothing was measured on this machine yet (--profile fresh "
        "measures)\n");
  } else {
    fmt::print("times are from a profile ({}) with {} threads\n", result.profile_source, result.threads);
  }
  if (command.run.options.memory.empty()) {
    print_table(result);
  } else if (result.budgets.front().feasible) {
    print_budget(result.budgets.front());
  }
  if (command.request.largest_batch) {
    if (result.largest_batch > 0) {
      fmt::print("the largest batch within {} is {}\n", format_bytes(result.budgets.front().budget_bytes),
                 result.largest_batch);
    } else {
      fmt::print("not even a batch of 1 fits {}\n", format_bytes(result.budgets.front().budget_bytes));
    }
  }
  for (const std::string& line : result.explanation) fmt::print("{}\n", line);
}

void run_plan(PlanCommand& command) {
  RunOptions& run = command.run;
  if (!run.json_file.empty()) check_writable(run.json_file, "--json");
  if (!command.request.explain.empty() && run.options.memory.empty()) {
    throw UserError("--explain needs --memory: what happens to a tensor depends on the budget");
  }
  ProgressView view(detail_of(run));
  run.options.on_note = [&view](const std::string& line) { view.note(line); };
  run.options.on_phase = [&view](const RunPhase& phase) { view.phase(phase); };
  const PlanResult result = plan_training(run.network, run.options, command.request);
  view.finish();
  if (!run.json_file.empty()) write_file(run.json_file, plan_json(result));
  if (!run.quiet) print_result(command, result);
  if (!run.options.memory.empty() && !result.budgets.front().feasible) {
    throw UserError(fmt::format(
        "{} batch {} cannot train within {}; name --memory {}MiB or more, or see --max-batch", result.model,
        result.batch, format_bytes(result.budgets.front().budget_bytes), result.smallest_bytes / kMiB));
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto command = std::make_shared<PlanCommand>();
  CLI::App* sub =
      app.add_subcommand("plan", "say what training under a budget would be like; trains nothing");
  sub->footer(
      "Examples:\n"
      "  penstock plan resnet50 --batch 32\n"
      "  penstock plan resnet50 --batch 32 --memory 1GiB --explain layer1.0.conv1\n"
      "  penstock plan resnet50 --memory 1GiB --max-batch\n"
      "  penstock plan resnet50 --batch 32 --memory 1GiB --out plan.json");
  add_common_options(*sub, command->run);
  add_optimizer_options(*sub, command->run.options);
  sub->add_flag("--evaluate", command->run.options.evaluate, "with room for an evaluation at the end");
  sub->add_flag("--max-batch", command->request.largest_batch,
                "search the largest batch that the budget can train");
  sub->add_option("--explain", command->request.explain,
                  "why this tensor, or what this op makes, is kept, swapped or computed again")
      ->type_name("NAME");
  sub->add_option("--out", command->request.out_file, "write the plan to this file, for train --plan")
      ->type_name("FILE");
  sub->callback([command] { run_plan(*command); });
}

}  // namespace penstock::cli
