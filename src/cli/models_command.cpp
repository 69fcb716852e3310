#include <fmt/format.h>

#include "cli/commands.h"
#include "penstock/network.h"

namespace penstock::cli {

void add_models_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "list the models");
  command->callback([] {
    fmt::print("{:<14} {:>8} {:>8} {:>8}  {}\n", "model", "channels", "image", "classes", "what it is");
    for (const ModelInfo& model : list_models()) {
      fmt::print(
          "{:<14} {:>8} {:>8} {:>8}  {}\n", model.name, model.channels,
          model.volumetric ? fmt::format("{}^3", model.image_size) : fmt::format("{}^2", model.image_size),
          model.classes, model.description);
    }
  });
}

}  // namespace penstock::cli
