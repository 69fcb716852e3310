#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "models/text_catalog.h"

namespace penstock::cli {
namespace {

void print_summary(const RunOptions& run, const TrainingResult& result) {
  if (!result.loss.empty()) {
    say(stdout, fmt::format("trained {} steps in {}: loss {:.4f} -> {:.4f}, {}\n", result.steps,
                            format_seconds(result.train_seconds), result.loss.front(), result.loss.back(),
                            rate_text(result.samples_per_second, result.sequence)));
  }
  if (result.stopped) {
    say(stdout, fmt::format("stopped by a signal after step {}{}\n", result.steps,
                            run.options.checkpoint_dir.empty()
                                ? "; without --checkpoint nothing was kept"
                                : fmt::format("; go on with --resume {}", run.options.checkpoint_dir)));
  }
  if (result.accuracy >= 0) {
    say(stdout,
        fmt::format("accuracy {:.2f} % on {} test images\n", result.accuracy * 100, result.test_samples));
  }
  if (result.validation_loss >= 0) say(stdout, fmt::format("{}\n", validation_text(result)));
  say(stdout, fmt::format("memory: peak {} of a budget of {}; without a budget this takes {}\n",
                          format_bytes(result.peak_rss_bytes), format_bytes(result.plan.budget_bytes),
                          format_bytes(result.plan.in_memory_bytes)));
  if (result.typical.swapped_out_bytes + result.typical.swapped_in_bytes > 0) {
    say(stdout,
        fmt::format("policy {}: {} out and {} in per step, {:.1f} % of the time spent waiting for the tier\n",
                    result.plan.policy, format_bytes(result.typical.swapped_out_bytes),
                    format_bytes(result.typical.swapped_in_bytes),
                    100 * result.typical.stall_seconds / std::max(result.typical.step_seconds, 1e-9)));
  }
  if (result.skipped_samples > 0)
    say(stdout, fmt::format("{} images did not decode and were skipped\n", result.skipped_samples));
  if (!run.options.save_file.empty())
    say(stdout, fmt::format("weights written to {}\n", run.options.save_file));
  if (!run.options.trace_file.empty()) {
    say(stdout, fmt::format("trace written to {}: open it at ui.perfetto.dev or chrome://tracing\n",
                            run.options.trace_file));
  }
  if (!run.options.report_file.empty())
    say(stdout, fmt::format("report written to {}\n", run.options.report_file));
}

/// What can be said in the words of the command line is said here; the library would say it in its own.
void check_options(const RunOptions& run) {
  const TrainingOptions& options = run.options;
  if ((options.steps < 1) == (options.epochs < 1))
    throw UserError("say how long to train: --steps N or --epochs N, one of them");
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty())
    throw UserError("--checkpoint-every needs --checkpoint DIR");
  if (!options.init_file.empty() && !options.resume_dir.empty()) {
    throw UserError(
        "--init and --resume exclude each other: one says where to start, the other where to go on");
  }
  if (options.session.ranks.ranks->rank() != 0) return;
  const std::pair<const std::string&, const char*> files[] = {
      {options.save_file, "--save"}, {options.trace_file, "--trace"}, {options.report_file, "--report"}};
  for (const auto& [file, flag] : files) {
    // A text model is saved into a folder, which the loop looks at.
    if (!file.empty() &&
        !(&file == &options.save_file && is_folder(file) && models::is_text_model(run.model.name)))
      check_writable(file, flag);
  }
  if (!options.checkpoint_dir.empty()) check_writable_folder(options.checkpoint_dir, "--checkpoint");
}

void run_train(RunOptions& run) {
  join(run);
  run.options.session.ranks.ranks->together([&] { check_options(run); });
  ProgressView view(detail_of(run));
  // Whoever waits for us to take turns is gone when it dies; nobody else would let us go on.
  if (run.take_turns) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run.options.settle_steps = run.take_turns;
  run.options.on_step = [&](const Progress& progress) {
    view.step(progress);
    if (run.take_turns) std::raise(SIGSTOP);
  };
  run.options.session.on_phase = [&view](const Phase& phase) { view.phase(phase); };
  run.options.session.on_note = [&view](const std::string& line) { view.note(line); };
  const StopSignals signals;
  run.options.stop_requested = [] { return StopSignals::received() != 0; };
  const TrainingResult result = train(run.model, run.options);
  view.finish();
  write_result(run, result);
  if (!run.quiet) print_summary(run, result);
  if (result.stopped) throw StoppedBySignal{StopSignals::received()};
}

}  // namespace

void add_train_command(CLI::App& app, const std::string& command_line) {
  auto run = std::make_shared<RunOptions>();
  TrainingOptions& options = run->options;
  options.command = command_line;
  CLI::App* command = app.add_subcommand("train", "train a network");
  command->footer(
      "Examples:\n"
      "  penstock train resnet20 --data fashion-mnist --epochs 2 --lr 0.1 --schedule cosine --evaluate\n"
      "  penstock train vgg16 --batch 16 --steps 20 --memory 1536MiB --json result.json\n"
      "  penstock train resnet50 --data images:photos --classes 12 --epochs 3 --checkpoint ckpt "
      "--checkpoint-every 100\n"
      "  penstock train resnet50 --data images:photos --classes 12 --epochs 3 --resume ckpt\n"
      "  penstock train model.onnx --data images:photos --steps 100 --freeze 'features.*' --save out.onnx\n"
      "  penstock train gpt2 --data text:book.txt --sequence 256 --steps 100 --optimizer adamw --memory "
      "1GiB\n"
      "  penstock train llama/config.json --init llama --data tokens:train.bin,validation.bin --steps 100 "
      "--evaluate");
  add_common_options(*command, *run);
  auto* steps = command->add_option("--steps", options.steps, "how many steps")->check(whole_number(1));
  command->add_option("--epochs", options.epochs, "or how many times through the data")
      ->check(whole_number(1))
      ->excludes(steps);
  command->add_option("--shuffle", options.shuffle, "on | off: a new order of the data each epoch")
      ->default_str("on")
      ->type_name("on|off");
  command->add_flag("--evaluate", options.evaluate,
                    "measure the accuracy, of text the loss, on the test split at the end");

  command->add_flag("--take-turns", run->take_turns,
                    "stop after each step until SIGCONT: to take turns with other runs");
  add_optimizer_options(*command, *run);

  auto* files = command->add_option_group("Files");
  files
      ->add_option("--save", options.save_file,
                   "write the weights to this safetensors file; of an ONNX file also to another one (.onnx), "
                   "of text also to a folder, with a config.json")
      ->type_name("FILE");
  files->add_option("--checkpoint", options.checkpoint_dir, "keep a checkpoint in this folder")
      ->type_name("DIR");
  files
      ->add_option("--checkpoint-every", options.checkpoint_every,
                   "steps between checkpoints (only at the end)")
      ->check(whole_number(1));
  files->add_option("--keep-checkpoints", options.keep_checkpoints, "how many of the newest stay (1)")
      ->check(whole_number(1, 1000000));
  files->add_option("--resume", options.resume_dir, "continue from the checkpoint in this folder")
      ->type_name("DIR");
  files->add_option("--plan", options.session.memory.plan_file, "train by this plan of `penstock plan --out`")
      ->type_name("FILE");
  files->add_option("--trace", options.trace_file, "write the first steps as a trace for Perfetto")
      ->type_name("FILE");
  files->add_option("--report", options.report_file, "write a page about the run: memory, time, layers, loss")
      ->type_name("FILE.html");
  command->callback([run] { run_train(*run); });
}

}  // namespace penstock::cli
