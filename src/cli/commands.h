#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace penstock::cli {

/// Thrown by a command that a signal ended early, once all is written that was asked for.
struct StoppedBySignal {
  int signal_number = 0;
};

/// Each adds its subcommand to the program; its callback runs the command and throws on failure.
/// `command_line` is what the user typed, for reports.
void add_train_command(CLI::App& app, const std::string& command_line);
void add_bench_command(CLI::App& app, const std::string& command_line);
void add_eval_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_models_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_show_command(CLI::App& app);

}  // namespace penstock::cli
