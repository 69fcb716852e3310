#include <algorithm>

#include "models/hub_config.h"
#include "models/text_models.h"

namespace penstock::models {
namespace {

/// Positions: newer files have them all in rope_parameters, older ones in rope_theta and rope_scaling.
void read_rotary(const HubConfig& config, LlamaConfig& llama) {
  const HubConfig part = config.part(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  llama.rotary_base = part.number("rope_theta", config.number("rope_theta", 10000));
  const std::string type = part.text("rope_type", part.text("type", "default").c_str());
  if (type == "default") return;
  if (type != "linear" && type != "llama3") part.fail(part.has("rope_type") ? "rope_type" : "type");
  llama.rotary_factor = part.number("factor", 1);
  if (type == "linear") return;
  llama.low_turns = part.number("low_freq_factor", 1);
  llama.high_turns = part.number("high_freq_factor", 4);
  llama.original_positions = part.count("original_max_position_embeddings");
  if (!(llama.low_turns < llama.high_turns)) part.fail("high_freq_factor");
}

}  // namespace

LlamaConfig read_llama_config(const std::string& path) {
  const HubConfig config = HubConfig::read(path);
  if (config.text("model_type", "llama") != "llama") config.fail("model_type");
  if (config.text("hidden_act", "silu") != "silu") config.fail("hidden_act");
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (config.flag(key, false)) config.fail(key);
  }
  LlamaConfig llama;
  llama.layers = config.layers("num_hidden_layers");
  llama.width = config.count("hidden_size");
  llama.inner_width = config.count("intermediate_size");
  llama.heads = config.count("num_attention_heads");
  llama.kv_heads = config.count("num_key_value_heads", llama.heads);
  llama.vocabulary = config.count("vocab_size");
  llama.positions = config.count("max_position_embeddings", 2048);
  llama.head_width = config.count("head_dim", std::max<std::int64_t>(1, llama.width / llama.heads));
  if (llama.heads % llama.kv_heads != 0) config.fail("num_key_value_heads");
  if (!config.has("head_dim") && llama.width % llama.heads != 0) config.fail("num_attention_heads");
  if (llama.head_width % 2 != 0) config.fail(config.has("head_dim") ? "head_dim" : "num_attention_heads");
  llama.epsilon = config.number("rms_norm_eps", 1e-6F);
  llama.tied = config.flag("tie_word_embeddings", false);
  read_rotary(config, llama);
  return llama;
}

}  // namespace penstock::models
