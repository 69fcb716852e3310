#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/commands.h"
#include "penstock/penstock.h"

namespace penstock::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  penstock train resnet20 --data fashion-mnist --epochs 1 --evaluate
  penstock train resnet50 --batch 32 --steps 10 --memory 1GiB
  penstock train resnet50 --data images:photos --classes 12 --batch 16 --epochs 5 --save trained.safetensors
  penstock plan resnet50 --batch 32
  penstock eval resnet20 --data fashion-mnist --init trained.safetensors
  penstock show lenet --batch 64
`penstock COMMAND --help` tells the options of a command.)";

/// What the ranks find wrong together, rank 0 says.
int report(int exit_code, const std::string& message) {
  if (launched_rank() != 0) return exit_code;
  say(stderr, fmt::format("penstock: {}\n", without_controls(message)));
  return exit_code;
}

/// What needs no memory to be said.
int report_no_memory() noexcept {
  say(stderr, "penstock: out of memory; name a smaller --memory or a smaller --batch\n");
  return 1;
}

/// What to say on the command line instead.
std::string budget_text(const BudgetFacts& facts) {
  std::string line = fmt::format("{}; name --memory {}MiB or more", BudgetTooSmall::what_is_wrong(facts),
                                 facts.advised_bytes / kMiB);
  if (facts.needed_swap_bytes > 0)
    line += fmt::format(", or --swap-space {}MiB", facts.needed_swap_bytes / kMiB + 1);
  if (facts.largest_batch > 0) line += fmt::format(", or --batch {} or less", facts.largest_batch);
  if (facts.largest_batch == 0) line += ", or a smaller network: not even --batch 1 fits";
  return line;
}

/// CLI11's messages end in hints over several lines; the first says what is wrong.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// As it would be typed: with quotes where the shell needs them.
std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = i == 0 ? "penstock" : argv[i];
    const bool plain =
        !argument.empty() &&
        argument.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@") == std::string::npos;
    if (i > 0) line += ' ';
    if (plain) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Penstock trains neural networks that do not fit in memory.", "penstock");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("penstock {}", version()));
  app.require_subcommand(1);
  // Said twice, the last counts: an option can be added to a command line that has it already.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_train_command(app, command_line(argc, argv));
  add_eval_command(app);
  add_plan_command(app);
  add_bench_command(app, command_line(argc, argv));
  add_generate_command(app);
  add_models_command(app);
  add_show_command(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      return report(
          2, fmt::format(
                 "there is no command '{}'; there are train, eval, generate, plan, bench, models and show",
                 argv[1]));
    }
    return report(2, fmt::format("{}; 'penstock --help' shows what can be said", first_line(error.what())));
  } catch (const StoppedBySignal& stop) {
    return exit_code_of_signal(stop.signal_number);
  } catch (const BudgetTooSmall& error) {
    return report(2, budget_text(error.facts()));
  } catch (const UserError& error) {
    return report(2, error.what());
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::exception& error) {
    return report(1, error.what());
  }
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    // While the command line was read, or an error was being told.
    return report_no_memory();
  }
}

}  // namespace penstock::cli
