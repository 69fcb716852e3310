#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace penstock::models {

struct TextOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 0;  ///< tokens of a sample; 0: as many as the model has positions
  bool dropout = true;        ///< false: leaves dropout out
};

/// GPT-2: learned positions, layer norm before each part, the output layer shares the embedding's weights.
/// Names and shapes as of Hugging Face's GPT2LMHeadModel, linear weights [inputs, outputs].
struct Gpt2Config {
  std::int64_t layers = 12, heads = 12, width = 768;
  std::int64_t vocabulary = 50257, positions = 1024;
  float epsilon = 1e-5F;
  float dropout = 0.1F;
};

/// Llama: rotary positions, RMS norm, gated units, fewer heads of keys and values than of queries. Names and
/// shapes as of Hugging Face's LlamaForCausalLM.
struct LlamaConfig {
  std::int64_t layers = 0, heads = 0, kv_heads = 0, head_width = 0, width = 0, inner_width = 0;
  std::int64_t vocabulary = 0, positions = 0;
  float epsilon = 1e-6F;
  bool tied = false;  ///< the output layer shares the embedding's weights
  float rotary_base = 10000;
  float rotary_factor = 1;
  float low_turns = 0, high_turns = 0;  ///< see ir::RotaryAttrs
  std::int64_t original_positions = 0;
};

struct TextModelInfo {
  std::string name;
  std::string description;
  Gpt2Config config;
};

/// gpt2, gpt2-medium, gpt2-large, gpt2-xl.
std::vector<TextModelInfo> list_text_models();

/// Inputs `tokens` and `labels`, s32 [batch, sequence]; output `loss`. Throws UserError if the sequence is
/// longer than the positions or an option is out of range.
ir::Graph build_gpt2(const std::string& name, const Gpt2Config& config, const TextOptions& options);
ir::Graph build_llama(const std::string& name, const LlamaConfig& config, const TextOptions& options);

/// The same networks for telling the next token, with the same parameters: one token a run, and what was
/// before it in keys and values that the caller keeps. `window`: how many tokens it is told from, the token
/// included. Inputs `token` and `position` s32 [1, 1]; `seen` u8 [1, 1, 1, window], 1 where there is a row;
/// for each layer i `keys.i` and `values.i` f32 [1, window - 1, W], the newest row last. Outputs `logits` f32
/// [1, 1, vocabulary]; for each layer the token's own row, `key.i` and `value.i` f32 [1, 1, W].
ir::Graph build_gpt2_next(const std::string& name, const Gpt2Config& config, std::int64_t window);
ir::Graph build_llama_next(const std::string& name, const LlamaConfig& config, std::int64_t window);

/// Read a config.json of Hugging Face's "gpt2" and "llama". Throw UserError that names the file and what is
/// missing or not supported.
Gpt2Config read_gpt2_config(const std::string& path);
LlamaConfig read_llama_config(const std::string& path);

}  // namespace penstock::models
