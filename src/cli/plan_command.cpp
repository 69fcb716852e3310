#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "models/text_catalog.h"
#include "report/forecast_text.h"

namespace penstock::cli {
namespace {

struct PlanCommand {
  RunOptions run;
  ForecastRequest request;
};

std::string plan_json(const PlanCommand& command, const ForecastTable& table) {
  const std::int64_t batch = command.run.options.batch;
  nlohmann::ordered_json json;
  json["model"] = command.run.model.name;
  json["batch"] = batch;
  json["threads"] = table.threads;
  json["profile_source"] = table.profile_source;
  json["in_memory_bytes"] = table.in_memory_bytes;
  json["in_memory_step_seconds"] = table.in_memory_step_seconds;
  json["smallest_bytes"] = table.smallest_bytes;
  if (table.largest_batch == kAnyBatch) {
    json["largest_batch"] = "any";
  } else if (table.largest_batch > 0) {
    json["largest_batch"] = table.largest_batch;
  }
  json["budgets"] = nlohmann::ordered_json::array();
  for (const Forecast& row : table.budgets) {
    nlohmann::ordered_json entry;
    entry["budget_bytes"] = row.budget_bytes;
    entry["feasible"] = row.feasible;
    if (row.feasible) {
      entry["policy"] = row.policy;
      entry["pool"] = row.pool;
      entry["overhead_bytes"] = row.overhead_bytes();
      entry["planned_peak_bytes"] = row.pool_bytes;
      entry["predicted_step_seconds"] = row.step.step_seconds;
      entry["compute_seconds"] = row.step.compute_seconds;
      entry["recompute_seconds"] = row.step.recompute_seconds;
      entry["stall_seconds"] = row.step.stall_seconds;
      entry["images_per_second"] =
          row.step.step_seconds > 0 ? static_cast<double>(batch) / row.step.step_seconds : 0;
      entry["in_memory_share"] = row.in_memory_share;
      entry["bound_seconds"] = row.bound_seconds;
      entry["swapped_out_bytes"] = row.step.swapped_out_bytes;
      entry["swapped_in_bytes"] = row.step.swapped_in_bytes;
      entry["swap_file_bytes"] = row.swap_file_bytes;
      entry["written_bytes_per_day"] = row.written_bytes_per_day;
    }
    json["budgets"].push_back(entry);
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_result(const PlanCommand& command, const ForecastTable& table) {
  const std::string& model = command.run.model.name;
  const std::int64_t batch = command.run.options.batch;
  const double in_memory_rate =
      table.in_memory_step_seconds > 0 ? static_cast<double>(batch) / table.in_memory_step_seconds : 0;
  const std::optional<models::TextInfo> text = models::find_text_info(model);
  std::int64_t sequence = command.run.model.sequence;
  if (sequence == 0 && text) sequence = text->positions;
  fmt::print("{} batch {}: {} in memory at {}; the smallest budget is {}\n", model, batch,
             format_bytes(table.in_memory_bytes),
             text ? rate_text(in_memory_rate, sequence) : fmt::format("{:.2f} images/s", in_memory_rate),
             format_bytes(table.smallest_bytes));
  if (table.profile_source == "estimate") {
    fmt::print(
        "times are estimated from shapes: nothing was measured on this machine yet (--profile fresh "
        "measures)\n");
  } else {
    fmt::print("times are from a profile ({}) with {} threads\n", table.profile_source, table.threads);
  }
  const Forecast& first = table.budgets.front();
  if (command.run.words.memory.empty()) {
    fmt::print("{}", report::forecast_table(table, batch, text ? sequence : 0));
  } else if (first.feasible) {
    fmt::print("{}", report::forecast_text(first, model, batch, text ? sequence : 0));
  }
  if (command.request.largest_batch) {
    if (table.largest_batch == kAnyBatch) {
      fmt::print("any batch fits {}\n", format_bytes(first.budget_bytes));
    } else if (table.largest_batch > 0) {
      fmt::print("the largest batch within {}{} is {}\n", format_bytes(first.budget_bytes),
                 table.swap_space_bytes > 0
                     ? fmt::format(" and {} of swap space", format_bytes(table.swap_space_bytes))
                     : "",
                 table.largest_batch);
    } else {
      fmt::print("not even a batch of 1 fits {}\n", format_bytes(first.budget_bytes));
    }
  }
  for (const std::string& line : table.explanation) fmt::print("{}\n", line);
}

void run_plan(PlanCommand& command) {
  RunOptions& run = command.run;
  if (!run.json_file.empty()) check_writable(run.json_file, "--json");
  if (run.words.memory.empty()) {
    if (!command.request.explain.empty() && command.request.explain != "smallest")
      throw UserError("--explain needs --memory: what happens to a tensor depends on the budget");
    if (!command.request.plan_file.empty()) throw UserError("--out needs --memory: a plan is for one budget");
    if (command.request.largest_batch)
      throw UserError("--max-batch needs --memory: the budget that the batch is to fit");
  }
  read_words(run);
  ProgressView view(detail_of(run));
  run.options.session.on_note = [&view](const std::string& line) { view.note(line); };
  run.options.session.on_phase = [&view](const Phase& phase) { view.phase(phase); };
  const ForecastTable table = plan_training(run.model, run.options, command.request);
  view.finish();
  if (!run.json_file.empty()) write_file(run.json_file, plan_json(command, table));
  if (!run.quiet) print_result(command, table);
  if (!run.words.memory.empty() && !table.budgets.front().feasible) {
    const Forecast& row = table.budgets.front();
    const std::string space =
        row.swap_file_bytes > 0 ? fmt::format(", or --swap-space {}MiB", row.swap_file_bytes / kMiB + 1) : "";
    throw UserError(
        fmt::format("{} batch {} cannot train within {}; name --memory {}MiB or more{}, or see --max-batch",
                    run.model.name, run.options.batch, format_bytes(row.budget_bytes),
                    table.smallest_bytes / kMiB, space));
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
  add_optimizer_options(*sub, command->run);
  sub->add_flag("--evaluate", command->run.options.evaluate, "with room for an evaluation at the end");
  sub->add_flag("--max-batch", command->request.largest_batch,
                "search the largest batch that the budget can train");
  sub->add_option(
         "--explain", command->request.explain,
         "why this tensor, or what this op makes, is kept, swapped or computed again; `smallest`: what "
         "the smallest budget is made of")
      ->type_name("NAME");
  sub->add_option("--out", command->request.plan_file, "write the plan to this file, for train --plan")
      ->type_name("FILE");
  sub->callback([command] { run_plan(*command); });
}

}  // namespace penstock::cli
