#include "models/transformer.h"

#include <utility>

#include "base/error.h"
#include "ir/infer.h"

namespace penstock::models {

using ir::OpKind;
using Value = Transformer::Value;

namespace {
constexpr ir::Init kZeros{ir::Init::Kind::constant, 0};
constexpr ir::Init kOnes{ir::Init::Kind::constant, 1};
}  // namespace

Transformer::Transformer(std::string network, std::int64_t batch, std::int64_t sequence) {
  graph_.name = std::move(network);
  tokens_ = graph_.add_input("tokens", ir::DType::s32, {batch, sequence});
  labels_ = graph_.add_input("labels", ir::DType::s32, {batch, sequence});
}

Value Transformer::parameter(const std::string& name, const ir::Shape& shape, ir::Init init) {
  const auto known = parameters_.find(name);
  if (known != parameters_.end()) {
    require(this->shape(known->second) == shape, "a parameter is used with two shapes");
    return known->second;
  }
  return parameters_[name] = graph_.add_state(name, shape, ir::Role::parameter, init);
}

std::vector<Value> Transformer::make(OpKind kind, const std::string& name, std::vector<Value> inputs,
                                     ir::Attrs attrs, const std::vector<std::string>& more_outputs) {
  std::vector<ir::Shape> shapes;
  for (const Value input : inputs) shapes.push_back(shape(input));
  ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
  if (!inferred.problem.empty()) throw UserError("layer " + name + ": " + inferred.problem);
  std::vector<Value> outputs;
  for (std::size_t i = 0; i < inferred.shapes.size(); ++i) {
    outputs.push_back(graph_.add_tensor(i == 0 ? name : name + "." + more_outputs.at(i - 1), ir::DType::f32,
                                        std::move(inferred.shapes[i]), ir::Role::activation));
  }
  graph_.add_op({kind, ir::Phase::forward, name, std::move(inputs), outputs, std::move(attrs)});
  return outputs;
}

Value Transformer::embedding(const std::string& name, Value weights, Value positions) {
  std::vector<Value> inputs{tokens_, weights};
  if (positions != ir::kNone) inputs.push_back(positions);
  return make(OpKind::embedding, name, std::move(inputs), ir::NoAttrs{})[0];
}

Value Transformer::linear(const std::string& name, Value x, const Linear& layer) {
  const ir::Shape& in = shape(x);
  const std::int64_t inputs = in[in.rank() - 1];
  const ir::Shape weights =
      layer.turned ? ir::Shape{inputs, layer.outputs} : ir::Shape{layer.outputs, inputs};
  std::vector<Value> operands{x, parameter(name + ".weight", weights, layer.init)};
  if (layer.bias) operands.push_back(parameter(name + ".bias", {layer.outputs}, kZeros));
  ir::LinearAttrs attrs;
  attrs.turned = layer.turned;
  return make(OpKind::linear, name, std::move(operands), attrs)[0];
}

Transformer::Normed Transformer::norm(const std::string& name, Value x, Value z,
                                      const ir::LayerNormAttrs& attrs) {
  const ir::Shape width{shape(x)[shape(x).rank() - 1]};
  ir::LayerNormAttrs own = attrs;
  own.add = z != ir::kNone;
  std::vector<Value> inputs{x, parameter(name + ".weight", width, kOnes)};
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
  const std::vector<Value> made = make(OpKind::layer_norm, name, std::move(inputs), own, more);
  return {made[0], own.add ? made.back() : x};
}

Value Transformer::attention(const std::string& name, const std::vector<Value>& operands,
                             ir::AttentionAttrs attrs) {
  attrs.key = attrs.dropout > 0 ? dropouts_++ : 0;
  return make(OpKind::attention, name, operands, attrs, {"log_sums"})[0];
}

Value Transformer::rotary(const std::string& name, Value x, const ir::RotaryAttrs& attrs) {
  return make(OpKind::rotary, name, {x}, attrs)[0];
}

Value Transformer::gate(const std::string& name, ir::Gate function, Value a, Value b) {
  return make(OpKind::gate, name, b == ir::kNone ? std::vector<Value>{a} : std::vector<Value>{a, b},
              ir::GateAttrs{function})[0];
}

Value Transformer::dropout(const std::string& name, Value x, float probability) {
  if (probability == 0) return x;
  return make(OpKind::dropout, name, {x}, ir::DropoutAttrs{probability, dropouts_++})[0];
}

ir::Graph Transformer::finish(Value x, Value weights) {
  graph_.loss = make(OpKind::linear_cross_entropy, "loss", {x, weights, labels_}, ir::OutputLossAttrs{},
                     {"log_sums"})[0];
  graph_.add_output("loss", graph_.loss);
  return std::move(graph_);
}

}  // namespace penstock::models
