#include <fmt/format.h>

#include <utility>

#include "ir/check_op.h"
#include "ir/infer.h"
#include "models/builder_impl.h"
#include "models/network_graph.h"

namespace penstock {

namespace {

/// More elements than this cannot be meant, and byte counts of such a tensor could overflow.
constexpr double kMaxElements = 1e15;
constexpr std::size_t kMaxRank = 6;

ir::Init to_ir_init(Init init) {
  const auto kind = init.kind == Init::Kind::constant  ? ir::Init::Kind::constant
                    : init.kind == Init::Kind::uniform ? ir::Init::Kind::uniform
                                                       : ir::Init::Kind::normal;
  return {kind, init.value};
}

}  // namespace

void check_size(const std::string& layer, const ir::Shape& shape) {
  double elements = 1;
  for (const std::int64_t extent : shape.dims()) {
    if (extent < 1)
      throw UserError(fmt::format("layer {} would give the empty shape {}", layer, shape.to_string()));
    elements *= static_cast<double>(extent);
  }
  if (shape.rank() > kMaxRank) {
    throw UserError(fmt::format("layer {} would give {}: {} extents are more than {}", layer,
                                shape.to_string(), shape.rank(), kMaxRank));
  }
  if (elements > kMaxElements) {
    throw UserError(
        fmt::format("layer {} would give the shape {}: too large; use smaller images or a smaller batch",
                    layer, shape.to_string()));
  }
}

ir::DType to_ir(DType dtype) {
  return dtype == DType::f32 ? ir::DType::f32 : dtype == DType::s32 ? ir::DType::s32 : ir::DType::u8;
}

DType from_ir(ir::DType dtype) {
  return dtype == ir::DType::f32 ? DType::f32 : dtype == ir::DType::s32 ? DType::s32 : DType::u8;
}

ir::TensorId NetworkBuilder::Impl::id(Value value) const {
  if (value.id < 0 || static_cast<std::size_t>(value.id) >= graph.tensors.size()) {
    throw UserError(
        fmt::format("network {}: a layer reads a value that this network does not have", graph.name));
  }
  return value.id;
}

void NetworkBuilder::Impl::check_channels(const std::string& layer, Value x) const {
  if (shape(x).rank() < 2)
    throw UserError(fmt::format("layer {} needs an input [N, C, ...], not {}", layer, shape(x).to_string()));
}

std::string NetworkBuilder::Impl::layer_name(const std::string& name, Value x, const char* suffix) {
  if (!name.empty()) {
    std::string full = scope + name;
    if (!layers.try_emplace(full, 1).second)
      throw UserError(fmt::format("two layers are called {}; give each its own name", full));
    return full;
  }
  std::string plain = fmt::format("{}.{}", base.empty() ? tensor(x).name.text() : base, suffix);
  if (layers.try_emplace(plain, 1).second) return plain;
  std::string made;
  int number = layers[plain];
  do {
    made = fmt::format("{}{}", plain, ++number);
  } while (!layers.try_emplace(made, 1).second);
  layers[plain] = number;
  return made;
}

Value NetworkBuilder::Impl::add_value(const std::string& name, ir::DType dtype, ir::Shape shape,
                                      ir::Role role) {
  check_size(name, shape);
  return {graph.add_tensor(name, dtype, shape, role)};
}

Value NetworkBuilder::Impl::add_state(const std::string& name, const ir::Shape& shape, ir::Role role,
                                      Init init) {
  check_size(name, shape);
  if (states.contains(name)) {
    throw UserError(fmt::format("two parameters are called {}; to tie them, use one value twice", name));
  }
  const ir::TensorId state = graph.add_state(name, shape, role, to_ir_init(init));
  states.emplace(name, state);
  return {state};
}

std::vector<ir::Shape> NetworkBuilder::Impl::infer(ir::OpKind kind, const std::string& layer,
                                                   const std::vector<Value>& inputs,
                                                   const ir::Attrs& attrs) const {
  std::vector<ir::Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Value input : inputs) shapes.push_back(shape(input));
  ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
  if (!inferred.problem.empty()) throw UserError(fmt::format("layer {}: {}", layer, inferred.problem));
  return std::move(inferred.shapes);
}

void NetworkBuilder::Impl::append(ir::OpKind kind, ir::Phase phase, const std::string& layer,
                                  const std::vector<Value>& inputs, const std::vector<Value>& outputs,
                                  ir::Attrs attrs) {
  ir::Op op;
  op.kind = kind;
  op.phase = phase;
  op.name = layer;
  op.attrs = std::move(attrs);
  for (const Value input : inputs) op.inputs.push_back(id(input));
  for (const Value output : outputs) op.outputs.push_back(id(output));
  const std::string problem = ir::check_op(graph, op);
  if (!problem.empty()) throw UserError(fmt::format("layer {}: {}", layer, problem));
  graph.add_op(std::move(op));
}

Value NetworkBuilder::Impl::make(ir::OpKind kind, const std::string& layer, const std::vector<Value>& inputs,
                                 ir::Attrs attrs, ir::DType dtype) {
  const Value y = add_value(layer, dtype, infer(kind, layer, inputs, attrs)[0]);
  append(kind, ir::Phase::forward, layer, inputs, {y}, std::move(attrs));
  return y;
}

std::vector<Value> NetworkBuilder::Impl::make_all(ir::OpKind kind, const std::string& layer,
                                                  const std::vector<Value>& inputs, const ir::Attrs& attrs,
                                                  const std::vector<std::string>& more) {
  const std::vector<ir::Shape> shapes = infer(kind, layer, inputs, attrs);
  std::vector<Value> outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    outputs.push_back(add_value(i == 0 ? layer : layer + "." + more.at(i - 1), ir::DType::f32, shapes[i]));
  }
  append(kind, ir::Phase::forward, layer, inputs, outputs, attrs);
  return outputs;
}

NetworkBuilder::NetworkBuilder(std::string name) : impl_(std::make_unique<Impl>()) {
  impl_->graph.name = std::move(name);
}
NetworkBuilder::~NetworkBuilder() = default;
NetworkBuilder::NetworkBuilder(NetworkBuilder&&) noexcept = default;
NetworkBuilder& NetworkBuilder::operator=(NetworkBuilder&&) noexcept = default;

NetworkBuilder::Scope::Scope(NetworkBuilder& builder, const std::string& name)
    : builder_(builder), outer_(builder.impl_->scope) {
  builder.impl_->scope = outer_ + name + ".";
}

NetworkBuilder::Scope::~Scope() {
  builder_.impl_->scope = outer_;
}

void NetworkBuilder::name_layers(const std::string& base) {
  impl_->base = base;
}

Network NetworkBuilder::finish() {
  const ir::Graph& graph = impl_->graph;
  if (graph.outputs.empty()) {
    throw UserError(fmt::format("network {} has no output; call loss() or output()", graph.name));
  }
  const std::string name = graph.name;
  Network network = models::make_network(std::move(impl_->graph));
  impl_ = std::make_unique<Impl>();
  impl_->graph.name = name;
  return network;
}

const Extents& NetworkBuilder::shape(Value value) const {
  return impl_->shape(value).dims();
}

DType NetworkBuilder::dtype(Value value) const {
  return from_ir(impl_->tensor(value).dtype);
}

std::string NetworkBuilder::name(Value value) const {
  return impl_->tensor(value).name;
}

Value NetworkBuilder::input(const std::string& name, DType dtype, const Extents& shape) {
  check_size(name, ir::Shape(shape));
  if (impl_->graph.find_input(name) != ir::kNone)
    throw UserError(fmt::format("two inputs of {} are called {}", impl_->graph.name, name));
  return {impl_->graph.add_input(name, to_ir(dtype), ir::Shape(shape))};
}

Value NetworkBuilder::parameter(const std::string& name, const Extents& shape, Init init) {
  return impl_->add_state(impl_->scope + name, ir::Shape(shape), ir::Role::parameter, init);
}

Value NetworkBuilder::buffer(const std::string& name, const Extents& shape, Init init) {
  return impl_->add_state(impl_->scope + name, ir::Shape(shape), ir::Role::buffer, init);
}

void NetworkBuilder::init(const std::string& parameter, Init init) {
  const auto found = impl_->states.find(impl_->scope + parameter);
  if (found == impl_->states.end()) {
    throw UserError(
        fmt::format("network {} has no parameter {}", impl_->graph.name, impl_->scope + parameter));
  }
  impl_->graph.tensor(found->second).init = to_ir_init(init);
}

void NetworkBuilder::output(const std::string& name, Value value, bool evaluation_only) {
  if (impl_->graph.find_output(name) != ir::kNone)
    throw UserError(fmt::format("two outputs of {} are called {}", impl_->graph.name, name));
  impl_->graph.add_output(name, impl_->id(value), evaluation_only);
}

}  // namespace penstock
