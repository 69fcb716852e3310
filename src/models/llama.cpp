#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/text_models.h"
#include "models/text_options.h"
#include "models/transformer.h"

namespace penstock::models {
namespace {

using ir::TensorId;

constexpr ir::Init kNormal{ir::Init::Kind::normal, 0.02F};

/// One network under construction.
class Llama {
 public:
  Llama(const std::string& name, const LlamaConfig& config, const TextOptions& options)
      : config_(config), net_(name, options.batch, options.sequence) {
    set_up();
  }
  Llama(const std::string& name, const LlamaConfig& config, std::int64_t window)
      : config_(config), net_(name, window) {
    set_up();
  }

  void set_up() {
    norm_.epsilon = config_.epsilon;
    norm_.rms = true;
    rotary_.head_width = rotary_.rotated = config_.head_width;
    rotary_.base = config_.rotary_base;
    rotary_.factor = config_.rotary_factor;
    rotary_.low_turns = config_.low_turns;
    rotary_.high_turns = config_.high_turns;
    rotary_.original_length = config_.original_positions;
  }

  ir::Graph build() {
    const ir::Shape table{config_.vocabulary, config_.width};
    const TensorId words = net_.parameter("model.embed_tokens.weight", table, kNormal);
    TensorId x = net_.embedding("model.embed_tokens", words, ir::kNone);
    TensorId more = ir::kNone;  // what the layer before adds to x
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const std::string layer = fmt::format("model.layers.{}", i);
      const auto first = net_.norm(layer + ".input_layernorm", x, more, norm_);
      const TensorId attended = attend(layer + ".self_attn", first.y);
      const auto second = net_.norm(layer + ".post_attention_layernorm", first.sum, attended, norm_);
      more = transform(layer + ".mlp", second.y);
      x = second.sum;
    }
    const TensorId y = net_.norm("model.norm", x, more, norm_).y;
    return net_.finish(y, config_.tied ? words : net_.parameter("lm_head.weight", table, kNormal));
  }

 private:
  TensorId project(const std::string& name, TensorId x, std::int64_t outputs) {
    return net_.linear(name, x, {outputs, false, false, kNormal});
  }

  TensorId attend(const std::string& name, TensorId x) {
    const std::int64_t kv_width = config_.kv_heads * config_.head_width;
    const TensorId q = project(name + ".q_proj", x, config_.heads * config_.head_width);
    const TensorId k = project(name + ".k_proj", x, kv_width);
    const TensorId v = project(name + ".v_proj", x, kv_width);
    ir::AttentionAttrs attrs;
    attrs.layout = ir::AttentionLayout::rows;
    attrs.heads = config_.heads;
    attrs.kv_heads = config_.kv_heads;
    attrs.causal = true;
    attrs.scale = 1 / std::sqrt(static_cast<float>(config_.head_width));
    if (net_.window() > 0)
      return project(name + ".o_proj", net_.attend_to_window(name, q, k, v, attrs, &rotary_), config_.width);
    const TensorId y = net_.attention(
        name, {net_.rotary(name + ".q_rotary", q, rotary_), net_.rotary(name + ".k_rotary", k, rotary_), v},
        attrs);
    return project(name + ".o_proj", y, config_.width);
  }

  TensorId transform(const std::string& name, TensorId x) {
    const TensorId gate = project(name + ".gate_proj", x, config_.inner_width);
    const TensorId up = project(name + ".up_proj", x, config_.inner_width);
    return project(name + ".down_proj", net_.gate(name + ".act_fn", ir::Gate::silu, gate, up), config_.width);
  }

  LlamaConfig config_;
  ir::LayerNormAttrs norm_;
  ir::RotaryAttrs rotary_;
  Transformer net_;
};

}  // namespace

ir::Graph build_llama(const std::string& name, const LlamaConfig& config, const TextOptions& options) {
  return Llama(name, config, checked_options(name, options, config.positions)).build();
}

ir::Graph build_llama_next(const std::string& name, const LlamaConfig& config, std::int64_t window) {
  return Llama(name, config, checked_options(name, {1, window, false}, config.positions).sequence).build();
}

}  // namespace penstock::models
