#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/text_models.h"
#include "models/text_options.h"
#include "models/transformer.h"

namespace penstock::models {
namespace {

using ir::TensorId;

constexpr float kDeviation = 0.02F;

ir::Init normal(float deviation) {
  return {ir::Init::Kind::normal, deviation};
}

/// One network under construction.
class Gpt2 {
 public:
  Gpt2(const std::string& name, const Gpt2Config& config, const TextOptions& options)
      : config_(config),
        dropout_(options.dropout ? config.dropout : 0),
        net_(name, options.batch, options.sequence) {
    norm_.epsilon = config.epsilon;
  }
  Gpt2(const std::string& name, const Gpt2Config& config, std::int64_t window)
      : config_(config), dropout_(0), net_(name, window) {
    norm_.epsilon = config.epsilon;
  }

  ir::Graph build() {
    const ir::Shape table{config_.vocabulary, config_.width};
    const TensorId words = net_.parameter("transformer.wte.weight", table, normal(kDeviation));
    const TensorId positions =
        net_.parameter("transformer.wpe.weight", {config_.positions, config_.width}, normal(kDeviation));
    TensorId x =
        net_.dropout("transformer.drop", net_.embedding("transformer.wte", words, positions), dropout_);
    TensorId more = ir::kNone;  // what the layer before adds to x
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const std::string layer = fmt::format("transformer.h.{}", i);
      const auto first = net_.norm(layer + ".ln_1", x, more, norm_);
      const auto second = net_.norm(layer + ".ln_2", first.sum, attend(layer + ".attn", first.y), norm_);
      more = transform(layer + ".mlp", second.y);
      x = second.sum;
    }
    return net_.finish(net_.norm("transformer.ln_f", x, more, norm_).y, words);
  }

 private:
  TensorId attend(const std::string& name, TensorId x) {
    ir::AttentionAttrs attrs;
    attrs.heads = attrs.kv_heads = config_.heads;
    attrs.causal = true;
    const std::int64_t head_width = config_.width / config_.heads;
    attrs.scale = 1 / std::sqrt(static_cast<float>(head_width));
    attrs.dropout = dropout_;
    const TensorId qkv =
        net_.linear(name + ".c_attn", x, {3 * config_.width, true, true, normal(kDeviation)});
    if (net_.window() == 0) return project(name, net_.attention(name, {qkv}, attrs));
    const std::int64_t width = config_.width;
    const std::vector<TensorId> parts = net_.split(name + ".split", qkv, {width, width, width});
    return project(name, net_.attend_to_window(name, parts[0], parts[1], parts[2], attrs, nullptr));
  }

  TensorId transform(const std::string& name, TensorId x) {
    const TensorId wide = net_.linear(name + ".c_fc", x, {4 * config_.width, true, true, normal(kDeviation)});
    return project(name, net_.gate(name + ".act", ir::Gate::gelu_tanh, wide));
  }

  /// Back to the width of x; the sum of all layers' parts keeps its size.
  TensorId project(const std::string& name, TensorId x) {
    const float deviation = kDeviation / std::sqrt(2 * static_cast<float>(config_.layers));
    const TensorId y = net_.linear(name + ".c_proj", x, {config_.width, true, true, normal(deviation)});
    return net_.dropout(name + ".dropout", y, dropout_);
  }

  Gpt2Config config_;
  float dropout_;
  ir::LayerNormAttrs norm_;
  Transformer net_;
};

}  // namespace

std::vector<TextModelInfo> list_text_models() {
  const auto size = [](std::int64_t layers, std::int64_t heads, std::int64_t width) {
    Gpt2Config config;
    config.layers = layers;
    config.heads = heads;
    config.width = width;
    return config;
  };
  return {{"gpt2", "GPT-2, 124 million parameters", size(12, 12, 768)},
          {"gpt2-medium", "GPT-2, 355 million parameters", size(24, 16, 1024)},
          {"gpt2-large", "GPT-2, 774 million parameters", size(36, 20, 1280)},
          {"gpt2-xl", "GPT-2, 1.56 billion parameters", size(48, 25, 1600)}};
}

ir::Graph build_gpt2(const std::string& name, const Gpt2Config& config, const TextOptions& options) {
  if (config.layers < 1 || config.heads < 1 || config.width < 1 || config.width % config.heads != 0) {
    throw UserError(fmt::format("{} cannot be built: {} layers of width {} with {} heads", name,
                                config.layers, config.width, config.heads));
  }
  return Gpt2(name, config, checked_options(name, options, config.positions)).build();
}

ir::Graph build_gpt2_next(const std::string& name, const Gpt2Config& config, std::int64_t window) {
  return Gpt2(name, config, checked_options(name, {1, window, false}, config.positions).sequence).build();
}

}  // namespace penstock::models
