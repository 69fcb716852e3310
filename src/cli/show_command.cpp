#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/parse.h"
#include "session/program.h"

namespace penstock::cli {
namespace {

struct ShowOptions {
  std::string name;
  ModelOptions model;
  std::string optimizer = "sgd";
  bool unlowered = false;
};

void run_show(const ShowOptions& options) {
  Optimizer optimizer;
  optimizer.kind = parse_optimizer(options.optimizer);
  if (optimizer.kind == OptimizerKind::sgd) optimizer.momentum = 0.9F;
  const Network network = Network::model(options.name, options.model);
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
  command->add_option("MODEL", options->name, "a model of `penstock models`")->required();
  command->add_option("--batch", options->model.batch, "images per step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--image-size", options->model.image_size, "edge of the images")
      ->check(CLI::PositiveNumber);
  command->add_option("--channels", options->model.channels, "channels of the images")
      ->check(CLI::PositiveNumber);
  command->add_option("--classes", options->model.classes, "number of classes")->check(CLI::PositiveNumber);
  command->add_option("--optimizer", options->optimizer, "sgd | adam | adamw")->capture_default_str();
  command->add_flag("--unlowered", options->unlowered,
                    "before layouts, reorders and in-place updates are chosen");
  command->callback([options] { run_show(*options); });
}

}  // namespace penstock::cli
