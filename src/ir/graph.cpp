#include "ir/graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace penstock::ir {

TensorId Graph::add_tensor(Name tensor_name, DType dtype, Shape shape, Role role) {
  Tensor tensor;
  tensor.name = tensor_name;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.role = role;
  tensor.storage = storages++;
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
}

TensorId Graph::add_state(Name tensor_name, Shape shape, Role role, Init init) {
  require(is_state(role), "add_state: the role is not that of state");
  const TensorId id = add_tensor(tensor_name, DType::f32, shape, role);
  tensor(id).init = init;
  carried.push_back({id, id});
  return id;
}

TensorId Graph::add_input(std::string port_name, DType dtype, Shape shape) {
  const TensorId id = add_tensor(port_name, dtype, shape, Role::input);
  const auto port = static_cast<std::int32_t>(inputs.size());
  add_op({OpKind::input, Phase::forward, port_name, {}, {id}, PortAttrs{port}});
  inputs.push_back({std::move(port_name), id});
  return id;
}

void Graph::add_output(std::string port_name, TensorId value, bool evaluation_only) {
  const auto port = static_cast<std::int32_t>(outputs.size());
  add_op({OpKind::output, Phase::forward, port_name + ".output", {value}, {}, PortAttrs{port}});
  outputs.push_back({std::move(port_name), value, evaluation_only});
}

TensorId Graph::add_successor(TensorId old, Name tensor_name) {
  Tensor next = tensor(old);
  next.name = tensor_name;
  next.producer = kNone;
  tensors.push_back(std::move(next));
  return static_cast<TensorId>(tensors.size() - 1);
}

void Graph::replace_carried(TensorId begin, TensorId end) {
  const auto found =
      std::find_if(carried.begin(), carried.end(), [&](const Carried& c) { return c.begin == begin; });
  require(found != carried.end(), "replace_carried: not a carried tensor");
  found->end = end;
}

OpId Graph::add_op(Op op) {
  const auto id = static_cast<OpId>(ops.size());
  for (const TensorId output : op.outputs) tensor(output).producer = id;
  ops.push_back(std::move(op));
  return id;
}

namespace {

std::int32_t find_port(const std::vector<Port>& ports, const std::string& name) {
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const Port& p) { return p.name == name && p.part_of == kNone; });
  return found == ports.end() ? kNone : static_cast<std::int32_t>(found - ports.begin());
}

}  // namespace

std::int32_t Graph::find_input(const std::string& port_name) const {
  return find_port(inputs, port_name);
}

std::int32_t Graph::find_output(const std::string& port_name) const {
  return find_port(outputs, port_name);
}

std::vector<std::int32_t> Graph::ports_of(std::int32_t port) const {
  if (inputs[static_cast<std::size_t>(port)].tensor != kNone) return {port};
  std::vector<std::int32_t> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].part_of == port && inputs[i].tensor != kNone) parts.push_back(static_cast<std::int32_t>(i));
  }
  return parts;
}

DType Graph::input_dtype(std::int32_t port) const {
  const std::vector<std::int32_t> ports = ports_of(port);
  require(!ports.empty(), "input_dtype: nothing needs this input");
  return tensor(inputs[static_cast<std::size_t>(ports.front())].tensor).dtype;
}

Shape Graph::input_shape(std::int32_t port) const {
  const std::vector<std::int32_t> ports = ports_of(port);
  require(!ports.empty(), "input_shape: nothing needs this input");
  const Port& last = inputs[static_cast<std::size_t>(ports.back())];
  Shape shape = tensor(last.tensor).shape;
  if (last.part_of != kNone) shape.set(0, shape[0] + last.first);
  return shape;
}

std::int64_t Graph::storage_bytes(StorageId storage) const {
  std::int64_t bytes = 0;
  for (const Tensor& t : tensors) {
    if (t.storage == storage) bytes = std::max(bytes, t.size_bytes());
  }
  return bytes;
}

LongVector<std::int64_t> storage_sizes(const Graph& graph) {
  LongVector<std::int64_t> sizes(static_cast<std::size_t>(graph.storages), 0);
  for (const Tensor& t : graph.tensors) {
    auto& bytes = sizes[static_cast<std::size_t>(t.storage)];
    bytes = std::max(bytes, t.size_bytes());
  }
  return sizes;
}

Rows<OpId> consumers(const Graph& graph) {
  // An op that reads a tensor twice is there once.
  const auto each = [&graph](auto&& found) {
    LongVector<OpId> last(graph.tensors.size(), kNone);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      const auto op = static_cast<OpId>(i);
      for (const TensorId input : graph.ops[i].inputs) {
        const auto t = static_cast<std::size_t>(input);
        if (std::exchange(last[t], op) != op) found(t, op);
      }
    }
  };
  LongVector<std::uint32_t> first(graph.tensors.size() + 1, 0);
  each([&](std::size_t tensor, OpId /*op*/) { ++first[tensor + 1]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  LongVector<OpId> readers(first.back());
  LongVector<std::uint32_t> next(first.begin(), first.end() - 1);
  each([&](std::size_t tensor, OpId op) { readers[next[tensor]++] = op; });
  return {std::move(first), std::move(readers)};
}

}  // namespace penstock::ir
