#include "models/hub_config.h"
#include "models/text_models.h"

namespace penstock::models {

Gpt2Config read_gpt2_config(const std::string& path) {
  const HubConfig config = HubConfig::read(path);
  if (config.text("model_type", "gpt2") != "gpt2") config.fail("model_type");
  if (config.text("activation_function", "gelu_new") != "gelu_new") config.fail("activation_function");
  for (const char* key : {"scale_attn_weights", "tie_word_embeddings"}) {
    if (!config.flag(key, true)) config.fail(key);
  }
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    if (config.flag(key, false)) config.fail(key);
  }
  Gpt2Config gpt2;
  if (config.has("n_layer")) gpt2.layers = config.layers("n_layer");
  gpt2.heads = config.count("n_head", gpt2.heads);
  gpt2.width = config.count("n_embd", gpt2.width);
  gpt2.vocabulary = config.count("vocab_size", gpt2.vocabulary);
  gpt2.positions = config.count("n_positions", gpt2.positions);
  if (gpt2.width % gpt2.heads != 0) config.fail("n_head");
  if (config.count("n_inner", 4 * gpt2.width) != 4 * gpt2.width) config.fail("n_inner");
  gpt2.epsilon = config.number("layer_norm_epsilon", gpt2.epsilon);
  gpt2.dropout = config.probability("resid_pdrop", gpt2.dropout);
  for (const char* key : {"embd_pdrop", "attn_pdrop"}) {
    if (config.probability(key, gpt2.dropout) != gpt2.dropout) config.fail(key);
  }
  return gpt2;
}

}  // namespace penstock::models
