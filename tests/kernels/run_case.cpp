#include "kernels/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/error.h"

namespace penstock::testing {
namespace {

using ir::Layout;
using ir::TensorId;

/// 64-byte aligned bytes that begin as NaN.
class Buffer {
 public:
  explicit Buffer(std::int64_t size_bytes) : size_bytes_(size_bytes) {
    data_.reset(static_cast<char*>(::operator new(static_cast<std::size_t>(size_bytes + 64), kAlignment)));
    std::memset(data_.get(), 0xFF, static_cast<std::size_t>(size_bytes + 64));
  }
  void* data() const { return data_.get(); }
  std::int64_t size_bytes() const { return size_bytes_; }
  bool overrun() const {
    return std::any_of(data_.get() + size_bytes_, data_.get() + size_bytes_ + 64,
                       [](char c) { return c != '\xFF'; });
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(char* data) const { ::operator delete(data, kAlignment); }
  };
  std::int64_t size_bytes_;
  std::unique_ptr<char, Free> data_;
};

bool same_layout(const Layout& a, const Layout& b) {
  return a.is_plain() ? b.is_plain() : a == b;
}

class Runner {
 public:
  Runner(kernels::Backend& backend, const CaseGraph& source, const RunOptions& options)
      : backend_(backend), source_(source), options_(options), graph_(source.graph) {
    step_.seed = 7;
    step_.step = 2;
    step_.learning_rate = 0.1;
    step_.first_sample = 3;
  }

  std::vector<CaseOutput> run() {
    for (const auto& [id, values] : source_.values) enter(id, values);
    for (const ir::Op& op : source_.graph.ops) run_op(op);
    return std::move(outputs_);
  }

 private:
  using Memory = std::shared_ptr<Buffer>;

  void enter(TensorId id, const std::vector<float>& values) {
    const auto memory = std::make_shared<Buffer>(graph_.tensor(id).size_bytes());
    if (graph_.tensor(id).dtype == ir::DType::s32) {
      std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(memory->data()));
    } else if (graph_.tensor(id).dtype == ir::DType::u8) {
      std::copy(values.begin(), values.end(), static_cast<std::uint8_t*>(memory->data()));
    } else {
      std::copy(values.begin(), values.end(), static_cast<float*>(memory->data()));
    }
    memory_[id] = memory;
  }

  bool is_free(TensorId id) const {
    return std::find(source_.weights.begin(), source_.weights.end(), id) != source_.weights.end() &&
           std::find(placed_.begin(), placed_.end(), id) == placed_.end();
  }

  Memory reordered(TensorId id, const Layout& from, const Layout& to, const Memory& memory) {
    if (same_layout(from, to)) return memory;
    ir::Tensor tensor = graph_.tensor(id);
    tensor.layout = to;
    auto result = std::make_shared<Buffer>(tensor.size_bytes());
    const auto kernel = backend_.reorder(graph_.tensor(id), from, to);
    execute(*kernel, {memory->data()}, {result->data()});
    require(!result->overrun(), "a reorder wrote beyond its output");
    return result;
  }

  void execute(const kernels::Kernel& kernel, const std::vector<const void*>& inputs,
               const std::vector<void*>& outputs) {
    const Buffer scratch(kernel.scratch_bytes());
    kernels::StepContext step = step_;
    step.feed = feed_;
    kernel.run({inputs, outputs, scratch.data(), &step});
    require(!scratch.overrun(), "a kernel wrote beyond its scratch");
  }

  void run_op(const ir::Op& original) {
    ir::Op op = original;
    std::vector<const Layout*> given;
    for (const TensorId id : op.inputs) given.push_back(is_free(id) ? nullptr : &graph_.tensor(id).layout);
    const kernels::Selection selection = backend_.select(graph_, op, given);
    require(selection.inputs.size() == op.inputs.size() && selection.outputs.size() == op.outputs.size(),
            "select() gave another number of layouts than the op has tensors");
    std::vector<Memory> inputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      inputs.push_back(place_input(op, i, selection.inputs[i]));
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      graph_.tensor(op.outputs[i]).layout = selection.outputs[i];
    std::shared_ptr<const kernels::Kernel> kernel = selection.kernel;
    if (options_.variant >= 0) {
      const auto variants = backend_.variants(graph_, op);
      require(!variants.empty(), "an op has no variant");
      kernel =
          variants[std::min<std::size_t>(static_cast<std::size_t>(options_.variant), variants.size() - 1)];
    }
    std::vector<Memory> outputs = place_outputs(original, op, inputs, *kernel);
    prepare_feed(op);
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Memory& memory : inputs) in.push_back(memory->data());
    for (const Memory& memory : outputs) out.push_back(memory->data());
    execute(*kernel, in, out);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      require(!outputs[i]->overrun(), "a kernel wrote beyond its output");
      memory_[op.outputs[i]] = outputs[i];
      collect(op, op.outputs[i]);
    }
  }

  /// The input's memory in layout `wanted`. Where that means a copy, the op reads a tensor of its own.
  Memory place_input(ir::Op& op, std::size_t index, const Layout& wanted) {
    const TensorId id = op.inputs[index];
    const Layout from = graph_.tensor(id).layout;
    Memory memory = reordered(id, from, wanted, memory_.at(id));
    if (is_free(id)) {
      graph_.tensor(id).layout = wanted;
      placed_.push_back(id);
      memory_[id] = memory;
    } else if (!same_layout(from, wanted)) {
      ir::Tensor copy = graph_.tensor(id);
      copy.layout = wanted;
      graph_.tensors.push_back(copy);
      op.inputs[index] = static_cast<TensorId>(graph_.tensors.size() - 1);
    }
    return memory;
  }

  /// State is updated where it lies; other outputs get memory of their own or that of a copy of an input.
  std::vector<Memory> place_outputs(const ir::Op& original, const ir::Op& op, std::vector<Memory>& inputs,
                                    const kernels::Kernel& kernel) {
    std::vector<Memory> outputs;
    std::vector<bool> taken(inputs.size(), false);
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const ir::Tensor& output = graph_.tensor(op.outputs[o]);
      Memory memory;
      for (std::size_t i = 0; i < inputs.size() && memory == nullptr; ++i) {
        const ir::Tensor& input = graph_.tensor(op.inputs[i]);
        if (graph_.tensor(original.inputs[i]).storage == output.storage) {
          require(same_layout(input.layout, output.layout), "an update changes the layout of its state");
          memory = inputs[i];
        } else if (options_.in_place && !taken[i] && kernel.can_overwrite(o, i) &&
                   input.size_bytes() == output.size_bytes()) {
          memory = std::make_shared<Buffer>(input.size_bytes());
          std::memcpy(memory->data(), inputs[i]->data(), static_cast<std::size_t>(input.size_bytes()));
          inputs[i] = memory;
          taken[i] = true;
        }
      }
      outputs.push_back(memory != nullptr ? memory : std::make_shared<Buffer>(output.size_bytes()));
    }
    return outputs;
  }

  void prepare_feed(const ir::Op& op) {
    if (op.kind != ir::OpKind::input) return;
    const std::int64_t count = graph_.tensor(op.outputs[0]).shape.elements();
    feed_ = [=](int input, void* to) {
      for (std::int64_t i = 0; i < count; ++i)
        static_cast<float*>(to)[i] = 0.5F * static_cast<float>(i) + static_cast<float>(input);
    };
  }

  void collect(const ir::Op& op, TensorId id) {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.role == ir::Role::workspace) return;
    const Memory plain = reordered(id, tensor.layout, Layout{}, memory_.at(id));
    CaseOutput output{ir::op_name(op.kind), tensor.name, {}};
    const auto count = static_cast<std::size_t>(tensor.shape.elements());
    if (tensor.dtype == ir::DType::s32) {
      const auto* values = static_cast<const std::int32_t*>(plain->data());
      output.values.assign(values, values + count);
    } else if (tensor.dtype == ir::DType::u8) {
      const auto* values = static_cast<const std::uint8_t*>(plain->data());
      output.values.assign(values, values + count);
    } else {
      const auto* values = static_cast<const float*>(plain->data());
      output.values.assign(values, values + count);
    }
    outputs_.push_back(std::move(output));
  }

  kernels::Backend& backend_;
  const CaseGraph& source_;
  const RunOptions& options_;
  ir::Graph graph_;  ///< with the layouts, and a tensor more for each reordered input
  kernels::StepContext step_;
  std::function<void(int, void*)> feed_;
  std::map<TensorId, Memory> memory_;
  std::vector<TensorId> placed_;  ///< weights whose layout is decided
  std::vector<CaseOutput> outputs_;
};

}  // namespace

std::vector<CaseOutput> run_graph(kernels::Backend& backend, const CaseGraph& graph,
                                  const RunOptions& options) {
  return Runner(backend, graph, options).run();
}

std::vector<CaseOutput> run_case(kernels::Backend& backend, const OpCase& op_case,
                                 const RunOptions& options) {
  return run_graph(backend, make_case_graph(op_case, options.backward), options);
}

std::string difference(const std::vector<CaseOutput>& have, const std::vector<CaseOutput>& want,
                       double tolerance) {
  if (have.size() != want.size()) return "another number of outputs";
  for (std::size_t t = 0; t < want.size(); ++t) {
    double largest = 0;
    for (const float value : want[t].values) largest = std::max<double>(largest, std::fabs(value));
    if (have[t].values.size() != want[t].values.size()) return "another number of elements";
    for (std::size_t i = 0; i < want[t].values.size(); ++i) {
      const double error = std::fabs(static_cast<double>(have[t].values[i]) - want[t].values[i]);
      if (error <= tolerance * largest) continue;
      return fmt::format("{} of {}: element {} is {} instead of {}", want[t].tensor, want[t].op, i,
                         have[t].values[i], want[t].values[i]);
    }
  }
  return {};
}

}  // namespace penstock::testing
