#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <span>

#include "models/text_catalog.h"
#include "penstock/generate.h"
#include "penstock/session.h"
#include "support/run_program.h"

// Token by token with keys and values kept, a network tells what it tells of the whole sequence at once.
namespace penstock {
namespace {

constexpr std::int64_t kLength = 7;
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 16,
  "vocab_size": 40, "n_positions": 12})";
constexpr const char* kLlama = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32,
  "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 40,
  "max_position_embeddings": 16})";

SessionOptions evaluation() {
  SessionOptions options;
  options.threads = 1;
  options.training = false;
  return options;
}

double cross_entropy(std::span<const float> logits, std::int32_t label) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) - logits[static_cast<std::size_t>(label)];
}

class NextToken : public ::testing::TestWithParam<const char*> {};

TEST_P(NextToken, IsToldAsInTheWholeSequence) {
  const testing::TemporaryFolder folder;
  const std::string model = folder.file("config.json");
  std::ofstream(model) << GetParam();
  Session whole(models::build_text_model(model, {1, kLength, 0, false}), Optimizer{}, evaluation());
  Session next(models::build_next_token_model(model, 0, kLength), Optimizer{}, evaluation());
  std::size_t copied = 0;
  for (const StateInfo& state : whole.state()) {
    // Weights that are large enough for attention to look at some tokens more than at others.
    std::vector<float> values;
    whole.read(state.name, [&](std::span<const float> has) { values.assign(has.begin(), has.end()); });
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += 0.3F * std::sin(static_cast<float>(i * 7 + copied));
    whole.write(state.name, values);
    next.write(state.name, values);
    ++copied;
  }
  EXPECT_EQ(copied, next.state().size());

  const std::vector<std::int32_t> tokens{3, 17, 39, 0, 17, 8, 21}, labels{17, 39, 0, 17, 8, 21, 5};
  double sum = 0;
  std::map<std::string, std::vector<float>> rows;
  for (std::int64_t place = 0; place < kLength; ++place) {
    const auto at = static_cast<std::size_t>(place);
    const std::vector<std::int32_t> token{tokens[at]}, position{static_cast<std::int32_t>(place)};
    Inputs inputs{{"token", token}, {"position", position}};
    inputs["seen"] = InputArray([&](const InputPart& part) {
      auto* flags = static_cast<std::uint8_t*>(part.to);
      for (std::int64_t i = 0; i < kLength; ++i) flags[i] = i >= kLength - 1 - place;
    });
    for (const PortInfo& port : models::build_next_token_model(model, 0, kLength).inputs()) {
      const std::size_t dot = port.name.find('.');
      if (dot == std::string::npos) continue;
      std::vector<float>& kept = rows[port.name];
      kept.resize(static_cast<std::size_t>((kLength - 1) * port.shape.back()));
      inputs[port.name] = InputArray([&kept](const InputPart& part) {
        std::copy(kept.begin(), kept.end(), static_cast<float*>(part.to));
      });
    }
    const StepResult done = next.run(inputs);
    sum += cross_entropy(done.outputs.at("logits").floats(), labels[at]);
    for (auto& [name, kept] : rows) {
      // The oldest row goes, the newest comes last.
      const std::size_t dot = name.find('.');
      const std::span<const float> row = done.outputs.at(name.substr(0, dot - 1) + name.substr(dot)).floats();
      kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(row.size()));
      kept.insert(kept.end(), row.begin(), row.end());
    }
  }
  EXPECT_NEAR(sum / kLength, whole.run({{"tokens", tokens}, {"labels", labels}}).loss, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, NextToken, ::testing::Values(kGpt2, kLlama),
                         [](const auto& test) { return test.index == 0 ? "gpt2" : "llama"; });

TEST(DrawToken, FollowsTheLogits) {
  GenerateOptions options;
  const std::vector<float> logits{0, 3, 1, 3, -2};
  std::map<std::int32_t, int> counts;
  for (std::int64_t place = 0; place < 4000; ++place) ++counts[draw_token(logits, options, place)];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (std::int32_t token = 0; token < 5; ++token) {
    const double expected =
        4000 * std::exp(static_cast<double>(logits[static_cast<std::size_t>(token)])) / sum;
    EXPECT_NEAR(counts[token], expected, 5 * std::sqrt(expected)) << token;
  }
  options.top_k = 2;
  for (std::int64_t place = 0; place < 100; ++place) EXPECT_EQ(draw_token(logits, options, place) % 2, 1);
  options.temperature = 0;
  EXPECT_EQ(draw_token(logits, options, 0), 1);
}

}  // namespace
}  // namespace penstock
