#include "models/text_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "base/error.h"

namespace penstock::models {
namespace {

using ::testing::HasSubstr;

std::map<std::string, ir::Shape> parameters(const ir::Graph& graph) {
  std::map<std::string, ir::Shape> found;
  for (const ir::Carried& state : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(state.begin);
    if (tensor.role == ir::Role::parameter) found.emplace(tensor.name, tensor.shape);
  }
  return found;
}

std::int64_t elements(const ir::Graph& graph) {
  std::int64_t sum = 0;
  for (const auto& [name, shape] : parameters(graph)) sum += shape.elements();
  return sum;
}

template <typename Work>
std::string user_error(const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TextModels, Gpt2HasTheHubsParameters) {
  const std::map<std::string, std::int64_t> sizes{
      {"gpt2", 124439808}, {"gpt2-medium", 354823168}, {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200}};
  for (const TextModelInfo& info : list_text_models()) {
    const ir::Graph graph = build_gpt2(info.name, info.config, {1, 64, true});
    EXPECT_NO_THROW(ir::verify(graph));
    EXPECT_EQ(elements(graph), sizes.at(info.name)) << info.name;
  }
  const auto found = parameters(build_gpt2("gpt2", {}, {}));
  EXPECT_EQ(found.size(), 148U);
  EXPECT_EQ(found.at("transformer.wte.weight"), (ir::Shape{50257, 768}));
  EXPECT_EQ(found.at("transformer.wpe.weight"), (ir::Shape{1024, 768}));
  EXPECT_EQ(found.at("transformer.h.0.attn.c_attn.weight"), (ir::Shape{768, 2304}));
  EXPECT_EQ(found.at("transformer.h.11.mlp.c_fc.weight"), (ir::Shape{768, 3072}));
  EXPECT_EQ(found.at("transformer.h.3.mlp.c_proj.bias"), (ir::Shape{768}));
  EXPECT_EQ(found.at("transformer.ln_f.bias"), (ir::Shape{768}));
}

TEST(TextModels, SequencesAreAsLongAsThePositions) {
  const ir::Graph graph = build_gpt2("gpt2", {}, {3, 0, false});
  EXPECT_EQ(graph.tensor(graph.inputs[0].tensor).shape, (ir::Shape{3, 1024}));
  EXPECT_THAT(user_error([] {
                build_gpt2("gpt2", {}, {1, 1025, true});
              }),
              HasSubstr("gpt2 takes sequences of 1 to 1024 tokens, not 1025"));
  EXPECT_THAT(user_error([] { build_gpt2("gpt2", {}, {0, 16, true}); }), HasSubstr("batch 0 is too small"));
}

class LlamaConfigs : public ::testing::Test {
 protected:
  ~LlamaConfigs() override { std::remove(path_.c_str()); }
  LlamaConfig read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_llama_config(path_);
  }
  std::string error(const std::string& text) {
    return user_error([&] { read(text); });
  }
  /// A whole config with more in front.
  static std::string with(const std::string& more) {
    return "{" + more + R"("hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
      "num_attention_heads": 4, "vocab_size": 100})";
  }

  std::string path_ = std::string(PENSTOCK_BINARY_DIR) + "/llama-" + std::to_string(::getpid()) + ".json";
};

TEST_F(LlamaConfigs, GiveTheHubsParameters) {
  const LlamaConfig config = read(with(R"("num_key_value_heads": 2, "tie_word_embeddings": false,)"));
  const ir::Graph graph = build_llama("llama", config, {2, 32, true});
  EXPECT_NO_THROW(ir::verify(graph));
  const auto found = parameters(graph);
  EXPECT_EQ(found.size(), 3U + 2 * 9);
  EXPECT_EQ(found.at("model.embed_tokens.weight"), (ir::Shape{100, 64}));
  EXPECT_EQ(found.at("model.layers.1.self_attn.q_proj.weight"), (ir::Shape{64, 64}));
  EXPECT_EQ(found.at("model.layers.1.self_attn.k_proj.weight"), (ir::Shape{32, 64}));
  EXPECT_EQ(found.at("model.layers.0.mlp.down_proj.weight"), (ir::Shape{64, 128}));
  EXPECT_EQ(found.at("lm_head.weight"), (ir::Shape{100, 64}));
  const auto tied = parameters(build_llama("llama", read(with(R"("tie_word_embeddings": true,)")), {}));
  EXPECT_FALSE(tied.contains("lm_head.weight"));
}

TEST_F(LlamaConfigs, OldAndNewPositionsAreRead) {
  const LlamaConfig old =
      read(with(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
    "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},)"));
  EXPECT_EQ(old.rotary_base, 500000);
  EXPECT_EQ(old.rotary_factor, 32);
  EXPECT_EQ(old.high_turns, 4);
  EXPECT_EQ(old.original_positions, 8192);
  const LlamaConfig now = read(with(R"("rope_parameters": {"rope_type": "default", "rope_theta": 100.0},)"));
  EXPECT_EQ(now.rotary_base, 100);
  EXPECT_EQ(now.rotary_factor, 1);
}

TEST_F(LlamaConfigs, WhatIsNotSupportedIsRefusedWithOneLine) {
  EXPECT_THAT(error("{"), HasSubstr("is no JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("has no num_hidden_layers"));
  EXPECT_THAT(error(with(R"("model_type": "mamba",)")),
              HasSubstr("model_type is \"mamba\", which is not supported"));
  EXPECT_THAT(error(with(R"("hidden_act": "relu",)")), HasSubstr("hidden_act"));
  EXPECT_THAT(error(with(R"("attention_bias": true,)")), HasSubstr("attention_bias is true"));
  EXPECT_THAT(error(with(R"("num_key_value_heads": 3,)")), HasSubstr("num_key_value_heads is 3"));
  EXPECT_THAT(error(with(R"("rope_scaling": {"rope_type": "yarn"},)")), HasSubstr("rope_type is \"yarn\""));
  EXPECT_THAT(error(with(R"("head_dim": -1,)")), HasSubstr("head_dim is -1"));
  EXPECT_THAT(error(with(R"("rms_norm_eps": "small",)")), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(error(std::string(1000, '[')), HasSubstr("nested too deeply"));
  std::remove(path_.c_str());
  EXPECT_THAT(user_error([&] { read_llama_config(path_); }), HasSubstr("llama-"));
}

}  // namespace
}  // namespace penstock::models
