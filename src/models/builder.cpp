#include "models/builder.h"

#include <fmt/format.h>

#include <utility>

#include "ir/infer.h"

namespace penstock::models {

namespace {

/// More elements than this cannot be meant, and byte counts of such a tensor could overflow.
constexpr double kMaxElements = 1e15;

void check_size(const std::string& layer, const ir::Shape& shape) {
  double elements = 1;
  for (const std::int64_t extent : shape.dims()) {
    if (extent < 1)
      throw UserError(fmt::format("layer {} would give the empty shape {}", layer, shape.to_string()));
    elements *= static_cast<double>(extent);
  }
  if (elements > kMaxElements) {
    throw UserError(
        fmt::format("layer {} would give the shape {}: too large; use smaller images or a smaller batch",
                    layer, shape.to_string()));
  }
}

}  // namespace

Builder::Builder(std::string network, ir::Shape images, const std::vector<std::int64_t>& label_shape) {
  check_size("images", images);
  std::vector<std::int64_t> labels{images[0]};
  labels.insert(labels.end(), label_shape.begin(), label_shape.end());
  graph_.name = std::move(network);
  images_ = graph_.add_input("images", ir::DType::f32, std::move(images));
  labels_ = graph_.add_input("labels", ir::DType::s32, ir::Shape(std::move(labels)));
}

std::string Builder::layer_name(const std::string& name, Value x, const char* suffix) {
  if (!name.empty()) {
    if (!layers_.insert(name).second)
      throw UserError(fmt::format("two layers are called {}; give each its own name", name));
    return name;
  }
  std::string made = fmt::format("{}.{}", graph_.tensor(x).name, suffix);
  for (int i = 2; !layers_.insert(made).second; ++i)
    made = fmt::format("{}.{}{}", graph_.tensor(x).name, suffix, i);
  return made;
}

Value Builder::add_output(const std::string& name, ir::DType dtype, ir::Shape shape, ir::Role role) {
  check_size(name, shape);
  return graph_.add_tensor(name, dtype, std::move(shape), role);
}

std::vector<ir::Shape> Builder::infer(ir::OpKind kind, const std::string& name,
                                      const std::vector<Value>& inputs, const ir::Attrs& attrs) const {
  std::vector<ir::Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Value input : inputs) shapes.push_back(shape(input));
  ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
  if (!inferred.problem.empty()) throw UserError(fmt::format("layer {}: {}", name, inferred.problem));
  return std::move(inferred.shapes);
}

Value Builder::make(ir::OpKind kind, const std::string& name, std::vector<Value> inputs, ir::Attrs attrs) {
  ir::Shape out = infer(kind, name, inputs, attrs)[0];
  const Value y = add_output(name, ir::DType::f32, std::move(out), ir::Role::activation);
  graph_.add_op({kind, ir::Phase::forward, name, std::move(inputs), {y}, std::move(attrs)});
  return y;
}

Value Builder::parameter(const std::string& name, ir::Shape shape, ir::Init init) {
  check_size(name, shape);
  const Value value = graph_.add_state(name, std::move(shape), ir::Role::parameter, init);
  parameters_.emplace(name, value);
  return value;
}

void Builder::init(const std::string& parameter, ir::Init init) {
  const auto found = parameters_.find(parameter);
  if (found == parameters_.end())
    throw UserError(fmt::format("network {} has no parameter {}", graph_.name, parameter));
  graph_.tensor(found->second).init = init;
}

Value Builder::relu(Value x, const std::string& name) {
  return make(ir::OpKind::activation, layer_name(name, x, "relu"), {x}, ir::ActivationAttrs{});
}

Value Builder::activation(Value x, const ir::ActivationAttrs& attrs, const std::string& name) {
  return make(ir::OpKind::activation, layer_name(name, x, "activation"), {x}, attrs);
}

Value Builder::dropout(Value x, float probability, const std::string& name) {
  if (!(probability >= 0 && probability < 1)) {
    throw UserError(fmt::format("dropout probability {} is not in [0, 1)", probability));
  }
  if (probability == 0) return x;
  return make(ir::OpKind::dropout, layer_name(name, x, "dropout"), {x},
              ir::DropoutAttrs{probability, dropouts_++});
}

Value Builder::add(Value a, Value b, const std::string& name) {
  return make(ir::OpKind::add, layer_name(name, a, "add"), {a, b});
}

Value Builder::multiply(Value a, Value b, const std::string& name) {
  return make(ir::OpKind::multiply, layer_name(name, a, "multiply"), {a, b});
}

Value Builder::softmax(Value x, std::int64_t axis, const std::string& name) {
  return make(ir::OpKind::softmax, layer_name(name, x, "softmax"), {x}, ir::AxisAttrs{axis});
}

ir::Graph Builder::finish(Value logits) {
  infer(ir::OpKind::cross_entropy, "loss", {logits, labels_}, {});
  graph_.loss = add_output("loss", ir::DType::f32, {1}, ir::Role::activation);
  const Value probabilities =
      add_output("probabilities", ir::DType::f32, shape(logits), ir::Role::activation);
  graph_.add_op({ir::OpKind::cross_entropy,
                 ir::Phase::forward,
                 "loss",
                 {logits, labels_},
                 {graph_.loss, probabilities},
                 {}});
  const Value correct = add_output("correct", ir::DType::s32, {1}, ir::Role::activation);
  graph_.add_op({ir::OpKind::count_correct, ir::Phase::forward, "correct", {logits, labels_}, {correct}, {}});
  graph_.add_output("loss", graph_.loss);
  graph_.add_output("logits", logits, true);
  graph_.add_output("correct", correct, true);
  return std::move(graph_);
}

}  // namespace penstock::models
