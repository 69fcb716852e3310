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
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

StepIo::StepIo(const ir::Graph& graph, const Inputs& inputs, Missing missing)
    : graph_(graph), arrays_(graph.inputs.size(), nullptr), unknown_(graph.tensors.size(), false) {
  for (const auto& [name, array] : inputs) {
    const std::int32_t port = graph.find_input(name);
    if (port == ir::kNone) {
      std::string known;
      for (const ir::Port& each : graph.inputs) {
        if (each.part_of == ir::kNone) known += (known.empty() ? "" : ", ") + each.name;
      }
      throw UserError(fmt::format("the network has no input '{}'; it has {}", name, known));
    }
    const std::vector<std::int32_t> ports = graph.ports_of(port);
    if (ports.empty()) continue;  // nothing here needs it
    check(port, array);
    for (const std::int32_t each : ports) arrays_[at(each)] = &array;
  }
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const ir::Port& port = graph.inputs[i];
    if (arrays_[i] != nullptr || port.tensor == ir::kNone) continue;
    const auto whole = port.part_of == ir::kNone ? static_cast<std::int32_t>(i) : port.part_of;
    if (missing == Missing::refuse)
      throw UserError(fmt::format("input '{}' of shape {} is missing", graph.inputs[at(whole)].name,
                                  graph.input_shape(whole).to_string()));
    unknown_[at(port.tensor)] = true;
  }
  follow_unknown();
}

void StepIo::check(std::int32_t number, const InputArray& array) const {
  if (array.fill) return;
  const std::string& name = graph_.inputs[at(number)].name;
  const ir::DType dtype = graph_.input_dtype(number);
  const ir::Shape shape = graph_.input_shape(number);
  if (array.dtype != dtype) {
    throw UserError(fmt::format("input '{}' is {}, the network takes {}", name, ir::dtype_name(array.dtype),
                                ir::dtype_name(dtype)));
  }
  if (static_cast<std::int64_t>(array.elements) != shape.elements() || array.data == nullptr) {
    throw UserError(fmt::format("input '{}' has {} values, the network takes {} of them: {}", name,
                                array.elements, shape.elements(), shape.to_string()));
  }
  if (dtype == DType::s32) check_classes(name, graph_.ports_of(number), array);
  if (dtype != DType::f32) return;
  const auto* values = static_cast<const float*>(array.data);
  const auto* wrong =
      std::find_if_not(values, values + array.elements, [](float v) { return std::isfinite(v); });
  if (wrong != values + array.elements)
    throw UserError(
        fmt::format("input '{}' has {} at place {}; give numbers only", name, *wrong, wrong - values));
}

void StepIo::check_classes(const std::string& name, const std::vector<std::int32_t>& ports,
                           const InputArray& array) const {
  std::vector<bool> is_part(graph_.tensors.size(), false);
  for (const std::int32_t port : ports) is_part[at(graph_.inputs[at(port)].tensor)] = true;
  std::int64_t fewest = 0;  // none: nothing looks anything up
  for (const ir::Op& op : graph_.ops) {
    const auto reads = [&](std::size_t i) { return op.inputs.size() > i && is_part[at(op.inputs[i])]; };
    // Micro-batches take parts of what comes whole.
    if (op.kind == ir::OpKind::slice && reads(0)) is_part[at(op.outputs[0])] = true;
    std::int64_t classes = 0;
    if ((op.kind == ir::OpKind::cross_entropy || op.kind == ir::OpKind::nll_loss) && reads(1))
      classes = graph_.tensor(op.inputs[0]).shape[1];
    if (op.kind == ir::OpKind::linear_cross_entropy && reads(2))
      classes = graph_.tensor(op.inputs[1]).shape[0];
    if (op.kind == ir::OpKind::embedding && reads(0)) classes = graph_.tensor(op.inputs[1]).shape[0];
    if (classes > 0) fewest = fewest == 0 ? classes : std::min(fewest, classes);
  }
  if (fewest == 0) return;
  const auto* values = static_cast<const std::int32_t*>(array.data);
  const auto* wrong =
      std::find_if(values, values + array.elements, [&](std::int32_t v) { return v >= fewest; });
  if (wrong != values + array.elements)
    throw UserError(fmt::format("input '{}' has {} at place {}; the network knows 0 to {}", name, *wrong,
                                wrong - values, fewest - 1));
}

void StepIo::follow_unknown() {
  if (std::find(unknown_.begin(), unknown_.end(), true) == unknown_.end()) return;
  for (const ir::Op& op : graph_.ops) {
    const bool depends =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](ir::TensorId t) { return unknown_[at(t)]; });
    if (!depends) continue;
    for (const ir::TensorId t : op.outputs) unknown_[at(t)] = true;
  }
}

void StepIo::feed(int input, void* to) const {
  const InputArray* array = arrays_[at(input)];
  const ir::Port& port = graph_.inputs[at(input)];
  const ir::Tensor& tensor = graph_.tensor(port.tensor);
  const auto bytes = static_cast<std::size_t>(tensor.shape.elements() * ir::dtype_bytes(tensor.dtype));
  const std::int64_t samples = tensor.shape.rank() > 0 ? tensor.shape[0] : 1;
  if (array == nullptr) {
    std::memset(to, 0, bytes);
  } else if (array->fill) {
    array->fill({to, port.first, samples});
  } else {
    const std::size_t sample_bytes = samples > 0 ? bytes / static_cast<std::size_t>(samples) : 0;
    std::memcpy(to, static_cast<const std::byte*>(array->data) + at(port.first) * sample_bytes, bytes);
  }
}

void StepIo::take(int output, const void* from, std::map<std::string, OutputArray>& outputs) {
  const ir::Port& port = graph_.outputs[at(output)];
  const ir::Tensor& tensor = graph_.tensor(port.tensor);
  if (unknown_[at(port.tensor)]) return;
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
