#include "lower/step_runner.h"

#include <algorithm>
#include <functional>

#include "autodiff/backward.h"
#include "base/random.h"

namespace penstock::testing {
namespace {

/// Labels are below it: the least that the tested networks have.
constexpr std::uint32_t kClasses = 3;

std::uint32_t number_of(const std::string& name) {
  return static_cast<std::uint32_t>(std::hash<std::string>{}(name));
}

/// Moves a tensor between its layout and plain order.
void reorder(kernels::Backend& backend, const ir::Tensor& tensor, const ir::Layout& from,
             const ir::Layout& to, const void* in, void* out, std::vector<float>& scratch) {
  const auto kernel = backend.reorder(tensor, from, to);
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(kernel->scratch_bytes()) / 4 + 16));
  const void* inputs[] = {in};
  void* outputs[] = {out};
  kernel->run({inputs, outputs, scratch.data(), nullptr});
}

}  // namespace

ir::Graph training_step(ir::Graph graph, const ir::SgdAttrs& attrs) {
  autodiff::append_backward(graph, graph.loss, [&](ir::Graph& g, ir::TensorId p, ir::TensorId gradient) {
    const std::string name = g.tensor(p).name;
    const ir::TensorId m = g.add_state(name + ".momentum", g.tensor(p).shape, ir::Role::optimizer_state, {});
    const ir::TensorId next_p = g.add_successor(p, name + ".next");
    const ir::TensorId next_m = g.add_successor(m, name + ".momentum.next");
    g.add_op({ir::OpKind::sgd_update, ir::Phase::update, name, {p, gradient, m}, {next_p, next_m}, attrs});
    g.replace_carried(p, next_p);
    g.replace_carried(m, next_m);
  });
  return graph;
}

StepRunner::StepRunner(kernels::Backend& backend, const lower::Executable& executable)
    : backend_(backend), executable_(executable) {
  for (const std::int64_t bytes : ir::storage_sizes(executable.graph)) {
    storages_.emplace_back(static_cast<std::size_t>(bytes) / 4 + 1);
  }
  const std::int64_t scratch =
      *std::max_element(executable.scratch_bytes.begin(), executable.scratch_bytes.end());
  scratch_.resize(static_cast<std::size_t>(scratch) / 4 + 16);
  for (const ir::Carried& state : executable.graph.carried) fill(state.begin);
  context_.seed = 3;
  context_.learning_rate = 0.05;
  const ir::Graph& graph = executable.graph;
  context_.feed = [this, &graph](int input, void* to) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs[static_cast<std::size_t>(input)].tensor);
    const CounterRandom random(5, RandomPurpose::synthetic, context_.step, 0);
    const auto count = static_cast<std::uint64_t>(tensor.shape.elements());
    // A part has what the whole has at its place.
    const auto first = static_cast<std::uint64_t>(graph.inputs[static_cast<std::size_t>(input)].first) *
                       (count / static_cast<std::uint64_t>(tensor.shape[0]));
    auto* floats = static_cast<float*>(to);
    auto* integers = static_cast<std::int32_t*>(to);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (tensor.dtype == ir::DType::f32) {
        floats[i] = random.normal(first + i);
      } else {
        integers[i] = static_cast<std::int32_t>(random.bits(first + i) % kClasses);
      }
    }
  };
  context_.take = [this, &graph](int output, const void* from) {
    if (output == graph.find_output("loss")) loss_ = *static_cast<const float*>(from);
  };
}

void StepRunner::fill(ir::TensorId id) {
  const ir::Tensor& tensor = executable_.graph.tensor(id);
  const CounterRandom random(1, RandomPurpose::initialise, 0, number_of(tensor.name));
  std::vector<float> plain(static_cast<std::size_t>(tensor.shape.elements()));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    plain[i] = tensor.init.kind == ir::Init::Kind::constant ? tensor.init.value
                                                            : (2 * random.uniform(i) - 1) * tensor.init.value;
  }
  if (tensor.layout.is_plain()) {
    std::copy(plain.begin(), plain.end(), static_cast<float*>(address(id)));
  } else {
    reorder(backend_, tensor, {}, tensor.layout, plain.data(), address(id), scratch_);
  }
}

float StepRunner::run() {
  const ir::Graph& graph = executable_.graph;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const ir::TensorId id : graph.ops[i].inputs) inputs.push_back(address(id));
    for (const ir::TensorId id : graph.ops[i].outputs) outputs.push_back(address(id));
    executable_.kernels[i]->run({inputs, outputs, scratch_.data(), &context_});
  }
  ++context_.step;
  return loss_;
}

std::map<std::string, std::vector<float>> StepRunner::state() const {
  std::map<std::string, std::vector<float>> values;
  for (const ir::Carried& state : executable_.graph.carried) {
    const ir::Tensor& tensor = executable_.graph.tensor(state.begin);
    const auto& memory = storages_[static_cast<std::size_t>(tensor.storage)];
    std::vector<float> plain(static_cast<std::size_t>(tensor.shape.elements()));
    if (tensor.layout.is_plain()) {
      std::copy_n(memory.begin(), plain.size(), plain.begin());
    } else {
      reorder(backend_, tensor, tensor.layout, {}, memory.data(), plain.data(), scratch_);
    }
    values.emplace(tensor.name, std::move(plain));
  }
  return values;
}

}  // namespace penstock::testing
