#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/parse.h"
#include "models/text_catalog.h"
#include "onnx/onnx_import.h"
#include "session/program.h"

namespace penstock::cli {
namespace {

struct ShowOptions {
  std::string name;
  ModelOptions model;
  std::int64_t sequence = 0;
  std::string optimizer = "sgd";
  std::string loss = "cross_entropy";
  std::vector<std::string> freeze;
  bool unlowered = false;
};

Network network_of(const ShowOptions& options) {
  Network network = [&] {
    if (options.sequence > 0) {
      if (!models::is_text_model(options.name))
        throw UserError(fmt::format("{} is a network for images, it has no sequence", options.name));
      return models::build_text_model(options.name,
                                      {options.model.batch, options.sequence, options.model.classes});
    }
    if (!onnx::is_onnx_path(options.name)) return Network::model(options.name, options.model);
    onnx::ImportOptions import;
    import.batch = options.model.batch;
    import.free_extent = options.model.image_size;
    import.loss = options.loss;
    return onnx::load(options.name, import).network();
  }();
  for (const std::string& pattern : options.freeze) network = network.freeze(pattern);
  return network;
}

void run_show(const ShowOptions& options) {
  Optimizer optimizer;
  optimizer.kind = parse_optimizer(options.optimizer);
  if (optimizer.kind == OptimizerKind::sgd) optimizer.momentum = 0.9F;
  const Network network = network_of(options);
  if (options.unlowered) {
    fmt::print("{}", ir::print(session::training_graph(network, optimizer)));
    return;
  }
  session::ProgramRequest request;
  request.optimizer = &optimizer;
  fmt::print("{}", ir::print(session::make_program(network, request).training->graph));
}

}  // namespace

void add_show_command(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "print one training step of a model, op by op");
  command->footer("Example:\n  penstock show lenet --batch 64");
  command
      ->add_option("MODEL", options->name,
                   "a model of `penstock models`, a file model.onnx, or a config.json")
      ->required();
  command->add_option("--batch", options->model.batch, "images or sequences per step")
      ->capture_default_str()
      ->check(whole_number(1));
  command->add_option("--image-size", options->model.image_size, "edge of the images")
      ->check(whole_number(1));
  command->add_option("--channels", options->model.channels, "channels of the images")
      ->check(whole_number(1));
  command->add_option("--classes", options->model.classes, "number of classes")->check(whole_number(1));
  command->add_option("--sequence", options->sequence, "text: tokens of a sample")->check(whole_number(1));
  command->add_option("--vocabulary", options->model.classes, "text: how many tokens there are")
      ->check(whole_number(1));
  command->add_option("--loss", options->loss, "of model.onnx: cross_entropy | output")
      ->capture_default_str();
  command->add_option("--freeze", options->freeze, "do not train the parameters of these names")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command->add_option("--optimizer", options->optimizer, "sgd | adam | adamw")->capture_default_str();
  command->add_flag("--unlowered", options->unlowered,
                    "before layouts, reorders and in-place updates are chosen");
  command->callback([options] { run_show(*options); });
}

}  // namespace penstock::cli
