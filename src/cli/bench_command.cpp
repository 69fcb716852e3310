#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/median.h"
#include "base/signals.h"
#include "base/text_file.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "measure/machine.h"
#include "penstock/penstock.h"
#include "plan/make_plan.h"
#include "report/bench_page.h"

namespace penstock::cli {
namespace {

using nlohmann::json;

struct BenchCommand {
  std::string model;
  std::int64_t batch = 32, steps = 4, repeat = 2;
  std::vector<std::string> budgets, policies;
  std::string turns = "run";
  std::string json_file, report_file, command_line;
  std::vector<std::string> train_options;
};

/// A policy under a budget, over all rounds; or everything in memory.
struct Cell {
  std::string policy;
  std::int64_t budget_bytes = 0;  ///< 0: none
  std::string reason;             ///< why it cannot run
  std::vector<json> results;      ///< what `train --json` wrote, by round
  std::vector<double> in_memory;  ///< images/s of everything in memory at the same time, by round

  std::vector<double> all(const char* key) const {
    std::vector<double> values;
    for (const json& result : results) values.push_back(result.at(key).get<double>());
    return values;
  }
  double typical(const char* key) const { return median(all(key)); }
  /// Of each round's steps but the first, which touches memory for the first time.
  std::vector<double> fastest_steps() const {
    std::vector<double> values;
    for (const json& result : results) {
      const std::vector<double> steps = result.at("step_seconds").get<std::vector<double>>();
      values.push_back(*std::min_element(steps.begin() + (steps.size() > 1 ? 1 : 0), steps.end()));
    }
    return values;
  }
  double largest(const char* key) const {
    const std::vector<double> values = all(key);
    return *std::max_element(values.begin(), values.end());
  }
  /// Median of all steps but each round's first, as images_per_second counts them.
  double step_seconds(std::int64_t batch) const {
    return static_cast<double>(batch) / typical("images_per_second");
  }
};

/// Each cell in a process of its own, all cells in turn, and that several times. Turns are whole runs; or
/// single steps, taken by all cells of a budget and by everything in memory, so that they see the same
/// machine though its speed changes within seconds.
class Bench {
 public:
  explicit Bench(const BenchCommand& command) : command_(command) {
    cells_.push_back({"keep", 0, "", {}, {}});
    for (const std::string& budget : command.budgets) {
      const std::int64_t bytes = parse_bytes(budget, "--budgets");
      for (const std::string& policy : command.policies) {
        plan::parse_policy(policy);
        cells_.push_back({policy, bytes, "", {}, {}});
      }
    }
  }

  void run() {
    const std::size_t policies = command_.policies.size();
    for (std::int64_t round = 0; round < command_.repeat; ++round) {
      if (command_.turns == "run") {
        for (Cell& cell : cells_) run({&cell});
        continue;
      }
      for (std::size_t first = 1; first < cells_.size(); first += policies) {
        std::vector<Cell*> group{&cells_.front()};
        for (std::size_t i = first; i < first + policies; ++i) group.push_back(&cells_[i]);
        run(group);
      }
    }
  }

  void print() const {
    const Cell& whole = cells_.front();
    say(stdout,
        fmt::format("{} batch {}, {} steps, {} rounds; in memory {:.2f} images/s, {}\n", command_.model,
                    command_.batch, command_.steps, command_.repeat, whole.typical("images_per_second"),
                    format_bytes(static_cast<std::int64_t>(whole.largest("peak_rss_bytes")))));
    say(stdout, fmt::format("{:<10}  {:<12}  {:>8}  {:>16}  {:>10}  {:>10}  {:>10}  {:>9}  {:>9}\n", "budget",
                            "policy", "images/s", "of in-memory", "peak", "out", "in", "again", "predicted"));
    for (std::size_t i = 1; i < cells_.size(); ++i) print(cells_[i]);
  }

  std::string to_json() const {
    nlohmann::ordered_json out;
    out["model"] = command_.model;
    out["batch"] = command_.batch;
    out["machine"] = measure::machine_text();
    out["in_memory_images_per_second"] = cells_.front().typical("images_per_second");
    out["in_memory_bytes"] = cells_.front().results.front().at("in_memory_bytes");
    for (const Cell& cell : cells_) {
      nlohmann::ordered_json entry;
      entry["policy"] = cell.policy;
      entry["budget_bytes"] = cell.budget_bytes;
      entry["feasible"] = cell.reason.empty();
      if (!cell.reason.empty()) {
        entry["reason"] = cell.reason;
      } else {
        entry["share_of_in_memory"] = shares(cell);
        entry["fastest_step_seconds"] = cell.fastest_steps();
        for (const json& result : cell.results)
          entry["step_seconds"].push_back(result.at("step_seconds").get<std::vector<double>>());
        for (const char* key :
             {"images_per_second", "peak_rss_bytes", "swapped_out_bytes", "swapped_in_bytes",
              "recompute_seconds", "stall_seconds", "predicted_step_seconds", "bound_seconds"}) {
          entry[key] = cell.all(key);
        }
      }
      out["cells"].push_back(entry);
    }
    return out.dump(2) + "\n";
  }

  std::string to_page() const {
    report::BenchReport page;
    page.model = command_.model;
    page.batch = command_.batch;
    page.command = command_.command_line;
    page.machine = measure::machine_text();
    page.version = version();
    page.in_memory_bytes = cells_.front().results.front().at("in_memory_bytes").get<std::int64_t>();
    page.in_memory_images_per_second = cells_.front().typical("images_per_second");
    for (std::size_t i = 1; i < cells_.size(); ++i) {
      const Cell& cell = cells_[i];
      page.points.push_back({cell.policy, cell.budget_bytes,
                             cell.reason.empty() ? cell.typical("images_per_second") : 0, cell.reason});
    }
    return report::bench_page(page);
  }

 private:
  /// A cell while it runs.
  struct Run {
    Cell* cell = nullptr;
    std::string result_file;
    std::unique_ptr<Child> child;
    bool ended = false;
  };

  void run(const std::vector<Cell*>& group) {
    std::vector<Run> runs;
    for (Cell* cell : group) {
      if (!cell->reason.empty()) continue;
      runs.push_back(start(*cell, runs.size()));
      runs.back().ended = runs.back().child->wait();
    }
    const auto goes_on = [](const Run& run) { return !run.ended; };
    while (std::any_of(runs.begin(), runs.end(), goes_on)) {
      for (Run& run : runs) {
        if (run.ended) continue;
        run.child->resume();
        run.ended = run.child->wait();
      }
    }
    for (const Run& run : runs) finish(run);
  }

  Run start(Cell& cell, std::size_t number) const {
    Run run;
    run.cell = &cell;
    run.result_file = fmt::format("{}/result-{}.json", folder_.path(), number);
    std::vector<std::string> arguments{"train",   command_.model,
                                       "--batch", std::to_string(command_.batch),
                                       "--steps", std::to_string(command_.steps)};
    arguments.insert(arguments.end(), command_.train_options.begin(), command_.train_options.end());
    for (const char* more : {"--quiet", "--json", run.result_file.c_str(), "--policy", cell.policy.c_str()}) {
      arguments.emplace_back(more);
    }
    if (cell.budget_bytes > 0) {
      arguments.emplace_back("--memory");
      arguments.push_back(std::to_string(cell.budget_bytes));
    }
    if (command_.turns == "step") arguments.emplace_back("--take-turns");
    run.child = std::make_unique<Child>(arguments, folder_.path());
    return run;
  }

  void finish(const Run& run) {
    Cell& cell = *run.cell;
    const ChildOutcome outcome = run.child->outcome();
    if (outcome.exit_code == 0) {
      cell.results.push_back(json::parse(read_file(run.result_file)));
      cell.in_memory.push_back(cells_.front().results.back().at("images_per_second").get<double>());
      return;
    }
    std::string line = outcome.error.substr(0, outcome.error.find('\n'));
    if (line.starts_with("penstock: ")) line.erase(0, 10);
    // A budget that is too small for a policy is a finding; anything else is wrong for every cell.
    if (outcome.exit_code == 2 && cell.budget_bytes > 0 &&
        line.find("cannot train within") != std::string::npos) {
      cell.reason = line;
      return;
    }
    if (outcome.exit_code == 2) throw UserError(line);
    throw RunError(fmt::format("{} {}: {}", cell.policy, format_bytes(cell.budget_bytes),
                               line.empty() ? fmt::format("exit code {}", outcome.exit_code) : line));
  }

  /// Round by round, because the machine's speed changes from round to round.
  static std::vector<double> shares(const Cell& cell) {
    std::vector<double> values = cell.all("images_per_second");
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= cell.in_memory[i];
    return values;
  }

  void print(const Cell& cell) const {
    const std::string budget = format_bytes(cell.budget_bytes);
    if (!cell.reason.empty()) {
      const std::size_t needs = cell.reason.find("needs at least");
      say(stdout, fmt::format("{:<10}  {:<12}  cannot run: {}\n", budget, cell.policy,
                              needs == std::string::npos
                                  ? cell.reason
                                  : cell.reason.substr(needs, cell.reason.find(';', needs) - needs)));
      return;
    }
    const std::vector<double> share = shares(cell);
    const auto [least, most] = std::minmax_element(share.begin(), share.end());
    const double predicted = cell.typical("predicted_step_seconds");
    const auto bytes = [&](const char* key) {
      return format_bytes(static_cast<std::int64_t>(cell.largest(key)));
    };
    say(stdout,
        fmt::format("{:<10}  {:<12}  {:>8.2f}  {:>7.1f} % ({:.0f}-{:.0f})  {:>10}  {:>10}  {:>10}  {:>7.2f} "
                    "s  {:>9}\n",
                    budget, cell.policy, cell.typical("images_per_second"), 100 * median(share), 100 * *least,
                    100 * *most, bytes("peak_rss_bytes"), bytes("swapped_out_bytes"),
                    bytes("swapped_in_bytes"), cell.typical("recompute_seconds"),
                    predicted > 0
                        ? fmt::format("{:+.1f} %", 100 * (predicted / cell.step_seconds(command_.batch) - 1))
                        : "-"));
  }

  const BenchCommand& command_;
  ScratchFolder folder_;
  std::vector<Cell> cells_;  ///< the first is everything in memory
};

void run_bench(const BenchCommand& command) {
  if (!command.json_file.empty()) check_writable(command.json_file, "--json");
  if (!command.report_file.empty()) check_writable(command.report_file, "--report");
  Bench bench(command);
  bench.run();
  bench.print();
  if (!command.json_file.empty()) write_file(command.json_file, bench.to_json());
  if (!command.report_file.empty()) write_file(command.report_file, bench.to_page());
}

}  // namespace

void add_bench_command(CLI::App& app, const std::string& command_line) {
  auto bench = std::make_shared<BenchCommand>();
  bench->command_line = command_line;
  for (const plan::PolicyKind policy : plan::all_policies()) {
    if (policy != plan::PolicyKind::keep) bench->policies.emplace_back(plan::policy_name(policy));
  }
  CLI::App* command =
      app.add_subcommand("bench", "compare policies and budgets, each in a process of its own");
  command->footer(
      "Any other option is handed to `penstock train`: --image-size, --tier, --tier-bandwidth, --threads "
      "...\n"
      "Example:\n"
      "  penstock bench resnet50 --batch 32 --budgets 1GiB,1536MiB --policies auto,window --json bench.json");
  command->allow_extras();
  command->add_option("MODEL", bench->model, "a model of `penstock models`")->required();
  command->add_option("--batch", bench->batch, "images per step")
      ->capture_default_str()
      ->check(whole_number(1));
  command->add_option("--budgets", bench->budgets, "budgets to try: 1GiB,1536MiB,...")
      ->required()
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--policies", bench->policies, "policies to try (all)")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--steps", bench->steps, "of each run")
      ->capture_default_str()
      ->check(whole_number(2, 1000000));
  command
      ->add_option("--turns", bench->turns,
                   "run | step: what runs do in turn; by steps all runs of a budget are there at a time")
      ->capture_default_str()
      ->check(CLI::IsMember({"run", "step"}));
  command->add_option("--repeat", bench->repeat, "rounds")->capture_default_str()->check(whole_number(1));
  command->add_option("--json", bench->json_file, "write the figures to this file")->type_name("FILE");
  command->add_option("--report", bench->report_file, "write a page with the curves to this file")
      ->type_name("FILE");
  command->callback([bench, command] {
    bench->train_options = command->remaining();
    run_bench(*bench);
  });
}

}  // namespace penstock::cli
