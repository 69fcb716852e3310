#include <fmt/format.h>

#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "onnx/onnx_import.h"

namespace penstock::cli {
namespace {

void run_eval(RunOptions& run) {
  join(run);
  if (run.options.init_file.empty() && run.options.resume_dir.empty() && !onnx::is_onnx_path(run.model.name))
    throw UserError("say which weights to evaluate: --init FILE or --resume DIR");
  ProgressView view(detail_of(run));
  run.options.session.on_phase = [&view](const Phase& phase) { view.phase(phase); };
  run.options.session.on_note = [&view](const std::string& line) { view.note(line); };
  const TrainingResult result = evaluate(run.model, run.options);
  write_result(run, result);
  if (run.quiet) return;
  if (result.sequence > 0) {
    say(stdout, fmt::format("{}, {}, peak memory {}\n", validation_text(result),
                            rate_text(result.samples_per_second, result.sequence),
                            format_bytes(result.peak_rss_bytes)));
    return;
  }
  say(stdout, fmt::format("accuracy {:.2f} % on {} test images, {:.1f} images/s, peak memory {}\n",
                          result.accuracy * 100, result.test_samples, result.samples_per_second,
                          format_bytes(result.peak_rss_bytes)));
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto run = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "eval", "measure the accuracy, of text the loss, of saved weights on the test split");
  command->footer(
      "Examples:\n"
      "  penstock eval resnet20 --data fashion-mnist --init trained.safetensors\n"
      "  penstock eval trained.onnx --data fashion-mnist\n"
      "  penstock eval resnet50 --data images:photos --classes 12 --resume ckpt --memory 1GiB\n"
      "  penstock eval gpt2 --init gpt2 --data tokens:train.bin,validation.bin --sequence 512");
  add_common_options(*command, *run);
  command
      ->add_option("--resume", run->options.resume_dir, "take the weights of the checkpoint in this folder")
      ->type_name("DIR");
  command->callback([run] { run_eval(*run); });
}

}  // namespace penstock::cli
