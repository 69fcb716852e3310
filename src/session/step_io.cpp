#include "session/step_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "lower/lower.h"

namespace penstock {

std::span<const float> OutputArray::floats() const {
  if (dtype != DType::f32) throw UserError("the output's numbers are not float32");
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const std::int32_t> OutputArray::integers() const {
  if (dtype != DType::s32) throw UserError("the output's numbers are not int32");
  return {reinterpret_cast<const std::int32_t*>(bytes.data()), bytes.size() / sizeof(std::int32_t)};
}

std::int64_t StateInfo::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

namespace session {

StepIo::StepIo(const ir::Graph& graph, const Inputs& inputs, Missing missing)
    : graph_(graph), arrays_(graph.inputs.size(), nullptr), unknown_(graph.tensors.size(), false) {
  for (const auto& [name, array] : inputs) {
    const std::int32_t port = graph.find_input(name);
    if (port == ir::kNone) {
      std::string known;
      for (const ir::Port& each : graph.inputs) known += (known.empty() ? "" : ", ") + each.name;
      throw UserError(fmt::format("the network has no input '{}'; it has {}", name, known));
    }
    if (graph.inputs[static_cast<std::size_t>(port)].tensor == ir::kNone) continue;  // nothing here needs it
    check(graph.inputs[static_cast<std::size_t>(port)], array);
    arrays_[static_cast<std::size_t>(port)] = &array;
  }
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const ir::Port& port = graph.inputs[i];
    if (arrays_[i] != nullptr || port.tensor == ir::kNone) continue;
    if (missing == Missing::refuse)
      throw UserError(fmt::format("input '{}' of shape {} is missing", port.name,
                                  graph.tensor(port.tensor).shape.to_string()));
    leave_out(port.tensor);
  }
}

void StepIo::check(const ir::Port& port, const InputArray& array) const {
  if (array.fill) return;
  const ir::Tensor& tensor = graph_.tensor(port.tensor);
  if (array.dtype != tensor.dtype) {
    throw UserError(fmt::format("input '{}' is {}, the network takes {}", port.name,
                                ir::dtype_name(array.dtype), ir::dtype_name(tensor.dtype)));
  }
  if (static_cast<std::int64_t>(array.elements) != tensor.shape.elements() || array.data == nullptr) {
    throw UserError(fmt::format("input '{}' has {} values, the network takes {} of them: {}", port.name,
                                array.elements, tensor.shape.elements(), tensor.shape.to_string()));
  }
  if (tensor.dtype == DType::s32) check_classes(port, array);
  if (tensor.dtype != DType::f32) return;
  const auto* values = static_cast<const float*>(array.data);
  const auto* wrong =
      std::find_if_not(values, values + array.elements, [](float v) { return std::isfinite(v); });
  if (wrong != values + array.elements)
    throw UserError(
        fmt::format("input '{}' has {} at place {}; give numbers only", port.name, *wrong, wrong - values));
}

void StepIo::check_classes(const ir::Port& port, const InputArray& array) const {
  const auto* values = static_cast<const std::int32_t*>(array.data);
  // The input itself, and the parts of it that micro-batches or slices of the batch take.
  std::set<ir::TensorId> parts{port.tensor};
  for (const ir::Op& op : graph_.ops) {
    const auto reads = [&](std::size_t i) { return op.inputs.size() > i && parts.contains(op.inputs[i]); };
    if (op.kind == ir::OpKind::slice && reads(0)) parts.insert(op.outputs[0]);
    std::int64_t classes = 0;
    if ((op.kind == ir::OpKind::cross_entropy || op.kind == ir::OpKind::nll_loss) && reads(1))
      classes = graph_.tensor(op.inputs[0]).shape[1];
    if (op.kind == ir::OpKind::linear_cross_entropy && reads(2))
      classes = graph_.tensor(op.inputs[1]).shape[0];
    if (op.kind == ir::OpKind::embedding && reads(0)) classes = graph_.tensor(op.inputs[1]).shape[0];
    if (classes == 0) continue;
    const auto* wrong =
        std::find_if(values, values + array.elements, [&](std::int32_t v) { return v >= classes; });
    if (wrong != values + array.elements)
      throw UserError(fmt::format("input '{}' has {} at place {}; the network knows 0 to {}", port.name,
                                  *wrong, wrong - values, classes - 1));
  }
}

void StepIo::leave_out(ir::TensorId input) {
  unknown_[static_cast<std::size_t>(input)] = true;
  for (const ir::Op& op : graph_.ops) {
    const bool depends = std::any_of(op.inputs.begin(), op.inputs.end(),
                                     [&](ir::TensorId t) { return unknown_[static_cast<std::size_t>(t)]; });
    if (!depends) continue;
    for (const ir::TensorId t : op.outputs) unknown_[static_cast<std::size_t>(t)] = true;
  }
}

void StepIo::feed(int input, void* to) const {
  const InputArray* array = arrays_[static_cast<std::size_t>(input)];
  const ir::Tensor& tensor = graph_.tensor(graph_.inputs[static_cast<std::size_t>(input)].tensor);
  const auto bytes = static_cast<std::size_t>(tensor.shape.elements() * ir::dtype_bytes(tensor.dtype));
  if (array == nullptr) {
    std::memset(to, 0, bytes);
  } else if (array->fill) {
    array->fill(to);
  } else {
    std::memcpy(to, array->data, bytes);
  }
}

void StepIo::take(int output, const void* from, std::map<std::string, OutputArray>& outputs) {
  const ir::Port& port = graph_.outputs[static_cast<std::size_t>(output)];
  const ir::Tensor& tensor = graph_.tensor(port.tensor);
  if (unknown_[static_cast<std::size_t>(port.tensor)]) return;
  if (port.name == "loss" || port.name == lower::kGradientNorm) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    (port.name == "loss" ? loss_ : gradient_norm_) = value;
    return;
  }
  OutputArray& array = outputs[port.name];
  array.dtype = tensor.dtype;
  array.shape = tensor.shape.dims();
  const auto* first = static_cast<const std::byte*>(from);
  array.bytes.assign(first, first + tensor.shape.elements() * ir::dtype_bytes(tensor.dtype));
}

}  // namespace session
}  // namespace penstock
