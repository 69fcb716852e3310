#include "models/transformer.h"

#include <utility>

#include "base/error.h"
#include "ir/infer.h"

namespace penstock::models {

using ir::OpKind;
using ir::TensorId;

namespace {
constexpr ir::Init kZeros{ir::Init::Kind::constant, 0};
constexpr ir::Init kOnes{ir::Init::Kind::constant, 1};
}  // namespace

Transformer::Transformer(std::string network, std::int64_t batch, std::int64_t sequence) {
  graph_.name = std::move(network);
  tokens_ = graph_.add_input("tokens", ir::DType::s32, {batch, sequence});
  labels_ = graph_.add_input("labels", ir::DType::s32, {batch, sequence});
}

Transformer::Transformer(std::string network, std::int64_t window) : window_(window) {
  graph_.name = std::move(network);
  tokens_ = graph_.add_input("token", ir::DType::s32, {1, 1});
  positions_ = graph_.add_input("position", ir::DType::s32, {1, 1});
  seen_ = graph_.add_input("seen", ir::DType::u8, {1, 1, 1, window});
}

TensorId Transformer::parameter(const std::string& name, const ir::Shape& shape, ir::Init init) {
  const auto known = parameters_.find(name);
  if (known != parameters_.end()) {
    require(this->shape(known->second) == shape, "a parameter is used with two shapes");
    return known->second;
  }
  return parameters_[name] = graph_.add_state(name, shape, ir::Role::parameter, init);
}

std::vector<TensorId> Transformer::make(OpKind kind, const std::string& name,
                                        const std::vector<TensorId>& inputs, ir::Attrs attrs,
                                        const std::vector<std::string>& more_outputs) {
  std::vector<ir::Shape> shapes;
  for (const TensorId input : inputs) shapes.push_back(shape(input));
  ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
  if (!inferred.problem.empty()) throw UserError("layer " + name + ": " + inferred.problem);
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < inferred.shapes.size(); ++i) {
    outputs.push_back(graph_.add_tensor(i == 0 ? name : name + "." + more_outputs.at(i - 1), ir::DType::f32,
                                        inferred.shapes[i], ir::Role::activation));
  }
  graph_.add_op({kind, ir::Phase::forward, name, inputs, outputs, std::move(attrs)});
  return outputs;
}

TensorId Transformer::embedding(const std::string& name, TensorId weights, TensorId positions) {
  if (window_ > 0) {
    const TensorId word = make(OpKind::embedding, name, {tokens_, weights}, ir::NoAttrs{})[0];
    if (positions == ir::kNone) return word;
    const TensorId place =
        make(OpKind::embedding, name + ".position", {positions_, positions}, ir::NoAttrs{})[0];
    return make(OpKind::add, name + ".sum", {word, place}, ir::NoAttrs{})[0];
  }
  std::vector<TensorId> inputs{tokens_, weights};
  if (positions != ir::kNone) inputs.push_back(positions);
  return make(OpKind::embedding, name, inputs, ir::NoAttrs{})[0];
}

TensorId Transformer::linear(const std::string& name, TensorId x, const Linear& layer) {
  const ir::Shape& in = shape(x);
  const std::int64_t inputs = in[in.rank() - 1];
  const ir::Shape weights =
      layer.turned ? ir::Shape{inputs, layer.outputs} : ir::Shape{layer.outputs, inputs};
  std::vector<TensorId> operands{x, parameter(name + ".weight", weights, layer.init)};
  if (layer.bias) operands.push_back(parameter(name + ".bias", {layer.outputs}, kZeros));
  ir::LinearAttrs attrs;
  attrs.turned = layer.turned;
  return make(OpKind::linear, name, operands, attrs)[0];
}

Transformer::Normed Transformer::norm(const std::string& name, TensorId x, TensorId z,
                                      const ir::LayerNormAttrs& attrs) {
  const ir::Shape width{shape(x)[shape(x).rank() - 1]};
  ir::LayerNormAttrs own = attrs;
  own.add = z != ir::kNone;
  std::vector<TensorId> inputs{x, parameter(name + ".weight", width, kOnes)};
  std::vector<std::string> more;
  if (!attrs.rms) {
    inputs.push_back(parameter(name + ".bias", width, kZeros));
    more.emplace_back("mean");
  }
  more.emplace_back("variance");
  if (own.add) {
    inputs.push_back(z);
    more.emplace_back("sum");
  }
  const std::vector<TensorId> made = make(OpKind::layer_norm, name, inputs, own, more);
  return {made[0], own.add ? made.back() : x};
}

TensorId Transformer::attention(const std::string& name, const std::vector<TensorId>& operands,
                                ir::AttentionAttrs attrs) {
  attrs.key = attrs.dropout > 0 ? dropouts_++ : 0;
  return make(OpKind::attention, name, operands, attrs, {"log_sums"})[0];
}

TensorId Transformer::attend_to_window(const std::string& name, TensorId q, TensorId k, TensorId v,
                                       ir::AttentionAttrs attrs, const ir::RotaryAttrs* turn) {
  const auto with_rows_before = [&](const char* plural, const char* single, TensorId row) {
    const std::string number = std::to_string(attentions_);
    graph_.add_output(single + number, row);
    if (window_ == 1) return row;
    ir::Shape before = shape(row);
    before.set(1, window_ - 1);
    const TensorId rows = graph_.add_input(plural + number, ir::DType::f32, before);
    return make(OpKind::concat, name + "." + plural, {rows, row}, ir::AxisAttrs{1})[0];
  };
  TensorId keys = with_rows_before("keys.", "key.", k);
  const TensorId values = with_rows_before("values.", "value.", v);
  ++attentions_;
  if (turn != nullptr) {
    // The last row of the window has the last position; only the distance between positions counts.
    const std::vector<std::int64_t> none(3, 0), others{0, window_ - 1, 0};
    keys = rotary(name + ".turned_keys", keys, *turn);
    q = make(OpKind::pad, name + ".padded_query", {q}, ir::PadAttrs{others, none, 0})[0];
    q = rotary(name + ".turned_query", q, *turn);
    q = make(OpKind::crop, name + ".query", {q}, ir::PadAttrs{others, none, 0})[0];
  }
  attrs.layout = ir::AttentionLayout::rows;
  attrs.causal = false;
  attrs.dropout = 0;
  return make(OpKind::attention, name, {q, keys, values, seen_}, attrs, {"log_sums"})[0];
}

std::vector<TensorId> Transformer::split(const std::string& name, TensorId x,
                                         const std::vector<std::int64_t>& sizes) {
  const std::size_t axis = shape(x).rank() - 1;
  std::vector<TensorId> parts;
  for (const std::int64_t size : sizes) {
    ir::Shape part = shape(x);
    part.set(axis, size);
    parts.push_back(graph_.add_tensor(name + "." + std::to_string(parts.size()), ir::DType::f32, part,
                                      ir::Role::activation));
  }
  graph_.add_op(
      {OpKind::split, ir::Phase::forward, name, {x}, parts, ir::AxisAttrs{static_cast<std::int64_t>(axis)}});
  return parts;
}

TensorId Transformer::rotary(const std::string& name, TensorId x, const ir::RotaryAttrs& attrs) {
  return make(OpKind::rotary, name, {x}, attrs)[0];
}

TensorId Transformer::gate(const std::string& name, ir::Gate function, TensorId a, TensorId b) {
  return make(OpKind::gate, name, b == ir::kNone ? std::vector<TensorId>{a} : std::vector<TensorId>{a, b},
              ir::GateAttrs{function})[0];
}

TensorId Transformer::dropout(const std::string& name, TensorId x, float probability) {
  if (probability == 0) return x;
  return make(OpKind::dropout, name, {x}, ir::DropoutAttrs{probability, dropouts_++})[0];
}

ir::Graph Transformer::finish(TensorId x, TensorId weights) {
  if (window_ > 0) {
    graph_.add_output("logits", make(OpKind::linear, "logits", {x, weights}, ir::LinearAttrs{})[0]);
    return std::move(graph_);
  }
  graph_.loss = make(OpKind::linear_cross_entropy, "loss", {x, weights, labels_}, ir::OutputLossAttrs{},
                     {"log_sums"})[0];
  graph_.add_output("loss", graph_.loss);
  return std::move(graph_);
}

}  // namespace penstock::models
