#include <fmt/format.h>

#include "cli/commands.h"
#include "models/text_catalog.h"
#include "penstock/network.h"

namespace penstock::cli {

void add_models_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "list the models");
  command->callback([] {
    fmt::print("{:<14} {:>8} {:>8} {:>8}  {}\n", "model", "channels", "image", "classes", "what it is");
    for (const ModelInfo& model : list_models()) {
      if (models::is_text_model(model.name)) continue;
      fmt::print(
          "{:<14} {:>8} {:>8} {:>8}  {}\n", model.name, model.channels,
          model.volumetric ? fmt::format("{}^3", model.image_size) : fmt::format("{}^2", model.image_size),
          model.classes, model.description);
    }
    fmt::print("\n{:<14} {:>8} {:>8} {:>8}  {}\n", "of text", "", "tokens", "of", "what it is");
    for (const models::TextInfo& model : models::list_text_infos()) {
      fmt::print("{:<14} {:>8} {:>8} {:>8}  {}\n", model.name, "", model.positions, model.vocabulary,
                 model.description);
    }
    fmt::print("config.json    a file of the Hugging Face hub, or its folder: gpt2 or llama\n");
  });
}

}  // namespace penstock::cli
