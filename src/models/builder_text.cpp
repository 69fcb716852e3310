#include <fmt/format.h>

#include <cmath>

#include "models/builder_impl.h"

// What transformers are made of.
namespace penstock {

namespace {

ir::AttentionAttrs attention_attrs(const AttentionOptions& options, std::int64_t head_width,
                                   std::uint32_t& dropouts) {
  ir::AttentionAttrs attrs;
  attrs.heads = options.heads;
  attrs.kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  attrs.causal = options.causal;
  attrs.scale =
      options.scale > 0 ? options.scale : static_cast<float>(1 / std::sqrt(static_cast<double>(head_width)));
  attrs.dropout = options.dropout;
  attrs.key = options.dropout > 0 ? dropouts++ : 0;
  return attrs;
}

void check_heads(const std::string& layer, const AttentionOptions& options, const ir::Shape& x) {
  if (options.heads < 1 || options.kv_heads < 0 || !(options.dropout >= 0 && options.dropout < 1)) {
    throw UserError(fmt::format("layer {}: {} heads with {} of keys and values, dropout {}: out of range",
                                layer, options.heads, options.kv_heads, options.dropout));
  }
  if (x.rank() != 3 && x.rank() != 4) {
    throw UserError(
        fmt::format("layer {} needs [B, S, heads D] or [B, heads, S, D], not {}", layer, x.to_string()));
  }
}

ir::Gate to_ir(Gate function) {
  return function == Gate::silu   ? ir::Gate::silu
         : function == Gate::gelu ? ir::Gate::gelu
                                  : ir::Gate::gelu_tanh;
}

}  // namespace

Value NetworkBuilder::embedding(Value tokens, Value weight, Value positions, const std::string& name) {
  std::vector<Value> inputs{tokens, weight};
  if (positions != Value{}) inputs.push_back(positions);
  return impl_->make(ir::OpKind::embedding, impl_->layer_name(name, tokens, "embedding"), inputs);
}

Value NetworkBuilder::attention(Value qkv, const AttentionOptions& options, const std::string& name) {
  const std::string layer = impl_->layer_name(name, qkv, "attention");
  const ir::Shape& in = impl_->shape(qkv);
  check_heads(layer, options, in);
  const std::int64_t heads = options.heads + 2 * (options.kv_heads > 0 ? options.kv_heads : options.heads);
  ir::AttentionAttrs attrs = attention_attrs(options, in[in.rank() - 1] / heads, impl_->dropouts);
  attrs.layout = ir::AttentionLayout::packed;
  return impl_->make_all(ir::OpKind::attention, layer, {qkv}, attrs, {"log_sums"})[0];
}

Value NetworkBuilder::attention(Value q, Value k, Value v, Value mask, const AttentionOptions& options,
                                const std::string& name) {
  const std::string layer = impl_->layer_name(name, q, "attention");
  const ir::Shape& in = impl_->shape(q);
  check_heads(layer, options, in);
  const bool rows = in.rank() == 3;
  ir::AttentionAttrs attrs = attention_attrs(options, rows ? in[2] / options.heads : in[3], impl_->dropouts);
  attrs.layout = rows ? ir::AttentionLayout::rows : ir::AttentionLayout::heads;
  std::vector<Value> inputs{q, k, v};
  if (mask != Value{}) inputs.push_back(mask);
  return impl_->make_all(ir::OpKind::attention, layer, inputs, attrs, {"log_sums"})[0];
}

Value NetworkBuilder::rotary(Value x, const RotaryOptions& options, const std::string& name) {
  ir::RotaryAttrs attrs;
  attrs.head_width = options.head_width;
  attrs.rotated = options.rotated > 0 ? options.rotated : options.head_width;
  attrs.base = options.base;
  attrs.interleaved = options.interleaved;
  attrs.factor = options.factor;
  attrs.low_turns = options.low_turns;
  attrs.high_turns = options.high_turns;
  attrs.original_length = options.original_length;
  return impl_->make(ir::OpKind::rotary, impl_->layer_name(name, x, "rotary"), {x}, attrs);
}

Value NetworkBuilder::gate(Gate function, Value a, Value b, const std::string& name) {
  std::vector<Value> inputs{a};
  if (b != Value{}) inputs.push_back(b);
  return impl_->make(ir::OpKind::gate, impl_->layer_name(name, a, "gate"), inputs,
                     ir::GateAttrs{to_ir(function)});
}

Value NetworkBuilder::linear_cross_entropy(Value x, Value weight, Value labels, float smoothing,
                                           const std::string& name) {
  if (!(smoothing >= 0 && smoothing < 1))
    throw UserError(fmt::format("label smoothing {} is not in [0, 1)", smoothing));
  ir::OutputLossAttrs attrs;
  attrs.smoothing = smoothing;
  return impl_->make_all(ir::OpKind::linear_cross_entropy, impl_->layer_name(name, x, "linear_cross_entropy"),
                         {x, weight, labels}, attrs, {"log_sums"})[0];
}

}  // namespace penstock
