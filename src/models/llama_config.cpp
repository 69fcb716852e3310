#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/text_file.h"
#include "models/text_models.h"

namespace penstock::models {
namespace {

using nlohmann::json;

constexpr int kDeepest = 32;
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

/// Values of a config.json; whatever does not fit is a UserError that names the file and the key.
class Config {
 public:
  Config(const std::string& path, json values) : path_(path), values_(std::move(values)) {}

  bool has(const char* key) const { return values_.contains(key) && !values_[key].is_null(); }

  /// Between 1 and 2^31.
  std::int64_t count(const char* key) const {
    if (!has(key)) throw UserError(fmt::format("{} has no {}: it is no config.json of a Llama", path_, key));
    const json& value = values_[key];
    if (!value.is_number_integer() || value < 1 || value > kLargest) fail(key);
    return value.get<std::int64_t>();
  }
  std::int64_t count(const char* key, std::int64_t usual) const { return has(key) ? count(key) : usual; }
  /// Above 0.
  float number(const char* key, float usual) const {
    if (!has(key)) return usual;
    const json& value = values_[key];
    if (!value.is_number() || !(value > 0) || value > 1e30) fail(key);
    return value.get<float>();
  }
  bool flag(const char* key, bool usual) const {
    if (!has(key)) return usual;
    if (!values_[key].is_boolean()) fail(key);
    return values_[key].get<bool>();
  }
  std::string text(const char* key, const char* usual) const {
    if (!has(key)) return usual;
    if (!values_[key].is_string()) fail(key);
    return values_[key].get<std::string>();
  }
  Config part(const char* key) const {
    if (!has(key)) return {path_, json::object()};
    if (!values_[key].is_object()) fail(key);
    return {path_, values_[key]};
  }

  [[noreturn]] void fail(const char* key) const {
    throw UserError(
        fmt::format("{}: {} is {}, which is not supported", path_, key, printable(values_[key].dump())));
  }

 private:
  std::string path_;
  json values_;
};

Config read_config(const std::string& path) {
  const std::string text = read_file(path);
  if (nests_deeper_than(text, kDeepest)) throw UserError(path + " is nested too deeply for a config.json");
  json values = json::parse(text, nullptr, false);
  if (!values.is_object()) throw UserError(path + " is no JSON object");
  return {path, std::move(values)};
}

/// Positions: newer files have them all in rope_parameters, older ones in rope_theta and rope_scaling.
void read_rotary(const Config& config, LlamaConfig& llama) {
  const Config part = config.part(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
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
  const Config config = read_config(path);
  if (config.text("model_type", "llama") != "llama") config.fail("model_type");
  if (config.text("hidden_act", "silu") != "silu") config.fail("hidden_act");
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (config.flag(key, false)) config.fail(key);
  }
  LlamaConfig llama;
  llama.layers = config.count("num_hidden_layers");
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
