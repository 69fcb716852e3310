#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace penstock::cli {

/// Each adds its subcommand to the program; its callback runs the command and throws on failure.
void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_models_command(CLI::App& app);
void add_show_command(CLI::App& app);

}  // namespace penstock::cli
