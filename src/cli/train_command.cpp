#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <memory>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_options.h"

namespace penstock::cli {
namespace {

void print_summary(const RunOptions& run, const Result& result) {
  const double seconds = std::accumulate(result.step_seconds.begin(), result.step_seconds.end(), 0.0);
  if (!result.loss.empty()) {
    fmt::print("trained {} steps in {}: loss {:.4f} -> {:.4f}, {:.1f} images/s\n", result.steps,
               format_seconds(seconds), result.loss.front(), result.loss.back(), result.images_per_second);
  }
  if (result.accuracy >= 0) {
    fmt::print("accuracy {:.2f} % on {} test images\n", result.accuracy * 100, result.test_images);
  }
  fmt::print("memory: peak {} of a budget of {}; without a budget this takes {}\n",
             format_bytes(result.peak_rss_bytes), format_bytes(result.budget_bytes),
             format_bytes(result.in_memory_bytes));
  if (result.swapped_out_bytes + result.swapped_in_bytes > 0) {
    fmt::print("policy {}: {} out and {} in per step, {:.1f} % of the time spent waiting for the tier\n",
               result.policy, format_bytes(result.swapped_out_bytes), format_bytes(result.swapped_in_bytes),
               seconds > 0 ? 100 * result.stall_seconds * static_cast<double>(result.steps) / seconds : 0.0);
  }
  if (result.skipped_images > 0)
    fmt::print("{} images did not decode and were skipped\n", result.skipped_images);
  if (!run.options.save_file.empty()) fmt::print("weights written to {}\n", run.options.save_file);
  if (!run.options.trace_file.empty()) {
    fmt::print("trace written to {}: open it at ui.perfetto.dev or chrome://tracing\n",
               run.options.trace_file);
  }
  if (!run.options.report_file.empty()) fmt::print("report written to {}\n", run.options.report_file);
}

void run_train(RunOptions& run) {
  join(run);
  ProgressView view(detail_of(run));
  // Whoever waits for us to take turns is gone when it dies; nobody else would let us go on.
  if (run.take_turns) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run.options.settle_steps = run.take_turns;
  run.options.on_step = [&](const Progress& progress) {
    view.step(progress);
    if (run.take_turns) std::raise(SIGSTOP);
  };
  run.options.on_phase = [&view](const RunPhase& phase) { view.phase(phase); };
  run.options.on_note = [&view](const std::string& line) { view.note(line); };
  const Result result = train(run.network, run.options);
  view.finish();
  write_result(run, result);
  if (!run.quiet) print_summary(run, result);
}

}  // namespace

void add_train_command(CLI::App& app, const std::string& command_line) {
  auto run = std::make_shared<RunOptions>();
  Options& options = run->options;
  options.command = command_line;
  CLI::App* command = app.add_subcommand("train", "train a network");
  command->footer(
      "Examples:\n"
      "  penstock train resnet20 --data fashion-mnist --epochs 2 --lr 0.1 --schedule cosine --evaluate\n"
      "  penstock train vgg16 --batch 16 --steps 20 --memory 1536MiB --json result.json\n"
      "  penstock train resnet50 --data images:photos --classes 12 --epochs 3 --checkpoint ckpt "
      "--checkpoint-every 100\n"
      "  penstock train resnet50 --data images:photos --classes 12 --epochs 3 --resume ckpt");
  add_common_options(*command, *run);
  auto* steps = command->add_option("--steps", options.steps, "how many steps")->check(CLI::PositiveNumber);
  command->add_option("--epochs", options.epochs, "or how many times through the data")
      ->check(CLI::PositiveNumber)
      ->excludes(steps);
  command->add_option("--shuffle", options.shuffle, "on | off: a new order of the data each epoch")
      ->default_str("on")
      ->type_name("on|off");
  command->add_flag("--evaluate", options.evaluate, "measure the accuracy on the test split at the end");

  command->add_flag("--take-turns", run->take_turns,
                    "stop after each step until SIGCONT: to take turns with other runs");
  add_optimizer_options(*command, options);

  auto* files = command->add_option_group("Files");
  files->add_option("--save", options.save_file, "write the weights to this safetensors file")
      ->type_name("FILE");
  files->add_option("--checkpoint", options.checkpoint_dir, "keep a checkpoint in this folder")
      ->type_name("DIR");
  files
      ->add_option("--checkpoint-every", options.checkpoint_every,
                   "steps between checkpoints (only at the end)")
      ->check(CLI::PositiveNumber);
  files->add_option("--resume", options.resume_dir, "continue from the checkpoint in this folder")
      ->type_name("DIR");
  files->add_option("--plan", options.plan_file, "train by this plan of `penstock plan --out`")
      ->type_name("FILE");
  files->add_option("--trace", options.trace_file, "write the first steps as a trace for Perfetto")
      ->type_name("FILE");
  files->add_option("--report", options.report_file, "write a page about the run: memory, time, layers, loss")
      ->type_name("FILE.html");
  command->callback([run] { run_train(*run); });
}

}  // namespace penstock::cli
