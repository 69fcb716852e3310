#include "autodiff/rules.h"
#include "base/error.h"
#include "ir/attention_sizes.h"

namespace penstock::autodiff {

using ir::OpKind;
using ir::TensorId;

void attention_rule(RuleContext& context) {
  const auto& attrs = context.op().attrs_as<ir::AttentionAttrs>();
  const std::size_t operands = ir::attention_operands(attrs);
  require(context.gradient(1) == ir::kNone, "attention's log-sums have no gradient rule");
  std::vector<TensorId> inputs(context.op().inputs.begin(),
                               context.op().inputs.begin() + static_cast<std::ptrdiff_t>(operands));
  inputs.insert(inputs.end(), {context.out(0), context.out(1), context.dy()});
  if (context.op().inputs.size() > operands) inputs.push_back(context.in(operands));
  const std::vector<std::size_t> all{0, 1, 2};
  context.emit(OpKind::attention_backward, "backward", inputs, attrs,
               {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(operands)});
}

void layer_norm_rule(RuleContext& context) {
  auto attrs = context.op().attrs_as<ir::LayerNormAttrs>();
  const std::size_t variance = attrs.rms ? 1 : 2;
  const std::size_t z = attrs.rms ? 2 : 3;
  const TensorId dsum = attrs.add ? context.gradient(variance + 1) : ir::kNone;
  for (std::size_t i = 1; i <= variance; ++i) {
    require(context.gradient(i) == ir::kNone, "statistics of a norm along rows have no gradient rule");
  }
  if (context.dy() == ir::kNone) {
    context.pass(0, dsum);
    context.pass(z, dsum);
    return;
  }
  std::vector<TensorId> inputs{attrs.add ? context.out(variance + 1) : context.in(0), context.dy(),
                               context.in(1)};
  for (std::size_t i = 1; i <= variance; ++i) inputs.push_back(context.out(i));
  const bool residual = attrs.add;
  attrs.add = dsum != ir::kNone;
  if (attrs.add) inputs.push_back(dsum);
  const std::vector<std::size_t> of_inputs =
      attrs.rms ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0, 1, 2};
  const std::vector<TensorId> made =
      context.emit(OpKind::layer_norm_backward, "backward", inputs, attrs, of_inputs);
  if (residual) context.pass(z, made[0]);
}

void embedding_rule(RuleContext& context) {
  if (context.op().inputs.size() > 2 && context.needs(2))
    context.emit(OpKind::position_backward, "backward_positions", {context.dy()}, ir::NoAttrs{}, {2});
  if (!context.needs(1)) return;
  const TensorId so_far = context.gradient_so_far(1);
  std::vector<TensorId> inputs{context.in(0), context.dy()};
  if (so_far == ir::kNone) {
    context.emit(OpKind::embedding_backward, "backward", inputs, ir::EmbeddingAttrs{}, {1});
    return;
  }
  // A tied output layer's gradient is dense already: the rows that occurred are added to it.
  inputs.push_back(so_far);
  context.replace(1, context.emit_intermediate(OpKind::embedding_backward, "backward", inputs,
                                               ir::EmbeddingAttrs{}, context.in(1)));
}

void rotary_rule(RuleContext& context) {
  auto attrs = context.op().attrs_as<ir::RotaryAttrs>();
  attrs.inverse = !attrs.inverse;
  context.emit(OpKind::rotary, "backward", {context.dy()}, attrs, {0});
}

void gate_rule(RuleContext& context) {
  std::vector<TensorId> inputs(context.op().inputs.begin(), context.op().inputs.end());
  inputs.push_back(context.dy());
  context.emit(OpKind::gate_backward, "backward", inputs, context.op().attrs,
               inputs.size() > 2 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0});
}

void linear_cross_entropy_rule(RuleContext& context) {
  context.emit(OpKind::linear_cross_entropy_backward, "backward",
               {context.in(0), context.in(1), context.in(2), context.out(1)}, context.op().attrs, {0, 1});
}

}  // namespace penstock::autodiff
