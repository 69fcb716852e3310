#include "models/text_catalog.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "models/hub_config.h"
#include "models/network_graph.h"
#include "models/text_models.h"

namespace penstock::models {
namespace {

using TextConfig = std::variant<Gpt2Config, LlamaConfig>;

/// The config.json that `name` stands for; empty: it is none.
std::string config_path(const std::string& name) {
  if (name.ends_with(".json")) return name;
  std::string inside = name + "/config.json";
  if (is_regular_file(inside)) return inside;
  // A folder may have a model's name, but no model has a path's.
  if (name.find('/') != std::string::npos && is_folder(name))
    throw UserError(fmt::format("the folder '{}' has no config.json, so it is no model", printable(name)));
  return {};
}

std::optional<TextConfig> find_config(const std::string& name) {
  for (const TextModelInfo& info : list_text_models()) {
    if (info.name == name) return info.config;
  }
  const std::string path = config_path(name);
  if (path.empty()) return std::nullopt;
  const HubConfig config = HubConfig::read(path);
  const std::string type = config.text("model_type", "llama");
  if (type == "gpt2") return read_gpt2_config(path);
  return read_llama_config(path);
}

}  // namespace

std::vector<TextInfo> list_text_infos() {
  std::vector<TextInfo> infos;
  for (const TextModelInfo& info : list_text_models())
    infos.push_back({info.name, info.description, info.config.vocabulary, info.config.positions});
  return infos;
}

std::optional<TextInfo> find_text_info(const std::string& name) {
  const std::optional<TextConfig> config = find_config(name);
  if (!config) return std::nullopt;
  return std::visit(
      [&](const auto& known) {
        return TextInfo{name, "", known.vocabulary, known.positions};
      },
      *config);
}

Network build_text_model(const std::string& name, const TextSizes& sizes) {
  std::optional<TextConfig> config = find_config(name);
  require(config.has_value(), "a text model is known");
  if (sizes.vocabulary != 0) {
    std::visit([&](auto& known) { known.vocabulary = sizes.vocabulary; }, *config);
  }
  const TextOptions options{sizes.batch, sizes.sequence, sizes.dropout};
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&*config))
    return make_network(build_gpt2(name, *gpt2, options));
  return make_network(build_llama(name, std::get<LlamaConfig>(*config), options));
}

Network build_next_token_model(const std::string& name, std::int64_t vocabulary, std::int64_t window) {
  std::optional<TextConfig> config = find_config(name);
  require(config.has_value(), "a text model is known");
  if (vocabulary != 0) std::visit([&](auto& known) { known.vocabulary = vocabulary; }, *config);
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&*config))
    return make_network(build_gpt2_next(name, *gpt2, window));
  return make_network(build_llama_next(name, std::get<LlamaConfig>(*config), window));
}

std::string text_model_config(const std::string& name, std::int64_t vocabulary) {
  nlohmann::json values;
  const std::string path = config_path(name);
  if (!path.empty()) {
    values = HubConfig::read(path).values();
  } else {
    const std::optional<TextConfig> config = find_config(name);
    require(config.has_value() && std::holds_alternative<Gpt2Config>(*config), "a text model is known");
    const Gpt2Config& gpt2 = std::get<Gpt2Config>(*config);
    values = {{"model_type", "gpt2"},
              {"n_layer", gpt2.layers},
              {"n_head", gpt2.heads},
              {"n_embd", gpt2.width},
              {"n_positions", gpt2.positions},
              {"resid_pdrop", 0.1},
              {"embd_pdrop", 0.1},
              {"attn_pdrop", 0.1},
              {"layer_norm_epsilon", 1e-5},
              {"activation_function", "gelu_new"}};
  }
  const bool is_gpt2 = values.value("model_type", "llama") == "gpt2";
  if (!values.contains("model_type")) values["model_type"] = "llama";
  values["architectures"] = {is_gpt2 ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  values["vocab_size"] = vocabulary;
  // Tokens that begin and end a text are the tokenizer's matter; those outside the vocabulary are none.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const bool fits = values.contains(key) && values[key].is_number_integer() && values[key] >= 0 &&
                      values[key] < vocabulary;
    if (!fits) values[key] = nullptr;
  }
  return values.dump(2) + "\n";
}

}  // namespace penstock::models
