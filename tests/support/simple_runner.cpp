#include "support/simple_runner.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace penstock::testing {

SimpleRunner::SimpleRunner(const lower::Executable& executable, kernels::Backend& backend)
    : executable_(executable), backend_(backend) {
  for (const std::int64_t size_bytes : ir::storage_sizes(executable.graph))
    storages_.push_back(allocate(size_bytes));
  std::int64_t scratch_bytes = 0;
  for (const std::int64_t size_bytes : executable.scratch_bytes)
    scratch_bytes = std::max(scratch_bytes, size_bytes);
  scratch_ = allocate(scratch_bytes);
}

SimpleRunner::Buffer SimpleRunner::allocate(std::int64_t size_bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(size_bytes, 1));
  Buffer buffer(static_cast<std::byte*>(::operator new (size, std::align_val_t{64})));
  std::memset(buffer.get(), 0xFF, size);
  return buffer;
}

void* SimpleRunner::address(ir::TensorId id) const {
  return storages_[static_cast<std::size_t>(executable_.graph.tensor(id).storage)].get();
}

const ir::Carried& SimpleRunner::find(const std::string& name) const {
  const auto& carried = executable_.graph.carried;
  const auto found = std::find_if(carried.begin(), carried.end(), [&](const ir::Carried& state) {
    return executable_.graph.tensor(state.begin).name == name;
  });
  if (found == carried.end()) throw InternalError("no state is called " + name);
  return *found;
}

void SimpleRunner::convert(const ir::Tensor& tensor, const ir::Layout& from, const ir::Layout& to,
                           const void* in, void* out) {
  if (from.is_plain() && to.is_plain()) {
    std::memcpy(out, in, static_cast<std::size_t>(tensor.size_bytes()));
    return;
  }
  const auto kernel = backend_.reorder(tensor, from, to);
  const Buffer scratch = allocate(kernel->scratch_bytes());
  const kernels::StepContext step;
  kernel->run({{&in, 1}, {&out, 1}, scratch.get(), &step});
}

void SimpleRunner::set_state(const std::string& name, const std::vector<float>& values) {
  const ir::Carried& state = find(name);
  const ir::Tensor& tensor = executable_.graph.tensor(state.begin);
  require(static_cast<std::int64_t>(values.size()) == tensor.shape.elements(),
          "set_state: another number of elements");
  convert(tensor, {}, tensor.layout, values.data(), address(state.begin));
}

std::vector<float> SimpleRunner::state(const std::string& name) {
  const ir::Carried& state = find(name);
  const ir::Tensor& tensor = executable_.graph.tensor(state.begin);
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  convert(tensor, tensor.layout, {}, address(state.begin), values.data());
  return values;
}

std::vector<std::string> SimpleRunner::state_names() const {
  std::vector<std::string> names;
  for (const ir::Carried& state : executable_.graph.carried) {
    names.push_back(executable_.graph.tensor(state.begin).name);
  }
  return names;
}

void SimpleRunner::run(const kernels::StepContext& step) {
  const ir::Graph& graph = executable_.graph;
  taken_.assign(graph.outputs.size(), {});
  kernels::StepContext taking = step;
  taking.take = [&](int output, const void* from) {
    const auto port = static_cast<std::size_t>(output);
    const auto* bytes = static_cast<const std::byte*>(from);
    taken_[port].assign(bytes, bytes + graph.tensor(graph.outputs[port].tensor).size_bytes());
  };
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    inputs.clear();
    outputs.clear();
    for (const ir::TensorId id : op.inputs) inputs.push_back(address(id));
    for (const ir::TensorId id : op.outputs) outputs.push_back(address(id));
    executable_.kernels[i]->run({inputs, outputs, scratch_.get(), &taking});
  }
}

const std::vector<std::byte>& SimpleRunner::output(const std::string& name) const {
  const std::int32_t port = executable_.graph.find_output(name);
  if (port == ir::kNone) throw InternalError("no output is called " + name);
  return taken_.at(static_cast<std::size_t>(port));
}

float SimpleRunner::loss() const {
  float value = 0;
  std::memcpy(&value, output("loss").data(), sizeof(value));
  return value;
}

std::int32_t SimpleRunner::correct() const {
  std::int32_t value = 0;
  std::memcpy(&value, output("correct").data(), sizeof(value));
  return value;
}

}  // namespace penstock::testing
