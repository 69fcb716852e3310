#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/run_options.h"
#include "penstock/generate.h"

namespace penstock::cli {
namespace {

struct GenerateCommand {
  RunOptions run;
  GenerateOptions options;
  std::string prompt, prompt_tokens;
};

std::vector<std::int32_t> parse_tokens(const std::string& text) {
  std::vector<std::int32_t> tokens;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    std::int32_t token = 0;
    const auto [next, error] = std::from_chars(at, end, token);
    if (error != std::errc() || token < 0 || (next != end && *next != ','))
      throw UserError(fmt::format("--prompt-tokens '{}' are no tokens; write 464,3290", text));
    tokens.push_back(token);
    at = next == end ? end : next + 1;
  }
  return tokens;
}

void run_generate(GenerateCommand& command) {
  if (command.prompt.empty() == command.prompt_tokens.empty())
    throw UserError("say what the text begins with: --prompt TEXT or --prompt-tokens 464,3290, one of them");
  const bool bytes = command.prompt_tokens.empty();
  read_words(command.run);
  GenerateOptions& options = command.options;
  options.session = command.run.options.session;
  options.init_file = command.run.options.init_file;
  options.vocabulary = command.run.model.classes;
  if (bytes) {
    for (const char letter : command.prompt) options.prompt.push_back(static_cast<unsigned char>(letter));
  } else {
    options.prompt = parse_tokens(command.prompt_tokens);
  }
  bool first = true;
  options.on_token = [&](std::int32_t token) {
    if (bytes && token < 256) {
      std::fputc(token, stdout);
    } else {
      fmt::print("{}{}", first ? "" : bytes ? " " : ",", token);
    }
    first = false;
    std::fflush(stdout);
  };
  if (bytes) fmt::print("{}", command.prompt);
  const GenerateResult result = generate(command.run.model.name, options);
  fmt::print("\n");
  std::fflush(stdout);
  if (!command.run.quiet) {
    fmt::print(stderr, "{:.1f} tokens/s, peak memory {}\n", result.tokens_per_second,
               format_bytes(result.peak_rss_bytes));
  }
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto command = std::make_shared<GenerateCommand>();
  CLI::App* sub = app.add_subcommand("generate", "continue a text with a trained text model");
  sub->footer(
      "Examples:\n"
      "  penstock generate gpt2 --vocabulary 256 --init book.safetensors --prompt 'Once upon a time' "
      "--tokens 200\n"
      "  penstock generate gpt2-xl --init gpt2-xl --prompt-tokens 464,3290 --temperature 0.8 --top-k 40 "
      "--memory 2GiB");
  add_common_options(*sub, command->run);
  sub->add_option("--resume", command->options.resume_dir,
                  "take the weights of the checkpoint in this folder")
      ->type_name("DIR");
  sub->add_option("--prompt", command->prompt, "what the text begins with; its bytes are the tokens");
  sub->add_option("--prompt-tokens", command->prompt_tokens, "the same as tokens: 464,3290");
  sub->add_option("--tokens", command->options.tokens, "how many tokens to add")
      ->capture_default_str()
      ->check(whole_number(1));
  sub->add_option("--temperature", command->options.temperature,
                  "what logits are divided by; 0: always the likeliest token")
      ->capture_default_str()
      ->check(number_from_zero());
  sub->add_option("--top-k", command->options.top_k, "draw from the likeliest so many only (all)")
      ->check(whole_number(0));
  sub->callback([command] { run_generate(*command); });
}

}  // namespace penstock::cli
