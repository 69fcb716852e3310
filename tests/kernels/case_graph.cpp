#include "kernels/case_graph.h"

#include <algorithm>
#include <numeric>

#include "autodiff/rules.h"
#include "base/error.h"
#include "base/random.h"
#include "ir/infer.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using ir::TensorId;

std::vector<float> fill(Fill how, std::int64_t count, std::uint32_t stream) {
  const CounterRandom random(20, RandomPurpose::synthetic, 0, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  const auto element = [&](std::size_t i) {
    switch (how) {
      case Fill::normal:
        return random.normal(i);
      case Fill::small:
        return 0.1F * random.normal(i);
      case Fill::positive:
        return 0.5F + random.uniform(i);
      case Fill::spaced:
        return (static_cast<float>(i) - 0.5F * static_cast<float>(count) + 0.3F) * 0.05F;
      case Fill::alternating:
        return (i % 2 == 0 ? 8.0F : -8.0F) + 0.1F * random.normal(i);
      case Fill::labels:
        return static_cast<float>(random.bits(i) % 3);
      case Fill::some_labels:
        return static_cast<float>(random.bits(i) % 4) - 1;
      case Fill::kept:
        return random.bits(i) % 4 == 0 ? 0.0F : 1.0F;
      case Fill::large:
        return 1.5F + random.uniform(i);
    }
    throw InternalError("not a fill");
  };
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(i);
  if (how == Fill::spaced) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[random.bits(i) % (i + 1)]);
  }
  return values;
}

class CaseBuilder {
 public:
  explicit CaseBuilder(const OpCase& op_case) : case_(op_case) { result_.graph.name = op_case.name; }

  CaseGraph build(bool backward) {
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) add_input(i);
    std::vector<TensorId> inputs = result_.inputs;
    if (case_.kind == OpKind::batch_norm && inputs.size() < 5) add_statistics(inputs);
    add_op(inputs);
    if (backward) add_backward();
    return std::move(result_);
  }

 private:
  ir::Graph& graph() { return result_.graph; }

  TensorId enter(const std::string& name, const ir::Shape& shape, ir::Role role, Fill how) {
    const TensorId id = graph().add_state(name, shape, role, {});
    if (how == Fill::kept) graph().tensor(id).dtype = ir::DType::u8;
    if (how == Fill::labels || how == Fill::some_labels) graph().tensor(id).dtype = ir::DType::s32;
    result_.values[id] = fill(how, shape.elements(), static_cast<std::uint32_t>(id));
    return id;
  }

  void add_input(std::size_t index) {
    const CaseInput& input = case_.inputs[index];
    const bool parameter = input.differentiable;
    const TensorId id = enter("input" + std::to_string(index), input.shape,
                              parameter ? ir::Role::parameter : ir::Role::buffer, input.fill);
    result_.inputs.push_back(id);
    if (input.weight) result_.weights.push_back(id);
  }

  void add_statistics(std::vector<TensorId>& inputs) {
    const ir::Shape channels{case_.inputs[0].shape[1]};
    const TensorId mean = graph().add_tensor("mean", ir::DType::f32, channels, ir::Role::activation);
    const TensorId variance = graph().add_tensor("variance", ir::DType::f32, channels, ir::Role::activation);
    graph().add_op({OpKind::batch_norm_statistics,
                    ir::Phase::forward,
                    "statistics",
                    {inputs[0]},
                    {mean, variance},
                    case_.attrs});
    inputs.insert(inputs.begin() + 3, {mean, variance});
  }

  bool updates_state() const {
    return case_.kind == OpKind::sgd_update || case_.kind == OpKind::adam_update ||
           case_.kind == OpKind::statistics_update;
  }

  void add_op(const std::vector<TensorId>& inputs) {
    std::vector<TensorId> outputs = updates_state() ? successors(inputs) : new_outputs(inputs);
    if (case_.kind == OpKind::input) graph().inputs.push_back({"input", outputs[0]});
    graph().add_op({case_.kind, ir::Phase::forward, "op", inputs, std::move(outputs), case_.attrs});
  }

  /// Updates write where their state lies: all inputs but the gradient and its factor (or the two batch
  /// statistics).
  std::vector<TensorId> successors(const std::vector<TensorId>& inputs) {
    std::vector<std::size_t> state{0, 1};
    const auto* sgd = case_.attrs.get_if<ir::SgdAttrs>();
    if (sgd != nullptr)
      state = inputs.size() > (sgd->clipped ? 3U : 2U) ? std::vector<std::size_t>{0, 2}
                                                       : std::vector<std::size_t>{0};
    if (case_.kind == OpKind::adam_update) state = {0, 2, 3};
    std::vector<TensorId> outputs;
    for (const std::size_t i : state) {
      outputs.push_back(graph().add_successor(inputs[i], "output" + std::to_string(outputs.size())));
      graph().replace_carried(inputs[i], outputs.back());
    }
    return outputs;
  }

  std::vector<TensorId> new_outputs(const std::vector<TensorId>& inputs) {
    std::vector<ir::Shape> shapes = case_.outputs;
    if (shapes.empty()) {
      std::vector<ir::Shape> input_shapes;
      for (const TensorId input : inputs) input_shapes.push_back(graph().tensor(input).shape);
      ir::Inferred inferred = ir::infer_shapes(case_.kind, case_.attrs, input_shapes);
      if (!inferred.problem.empty()) throw InternalError(case_.name + ": " + inferred.problem);
      shapes = std::move(inferred.shapes);
    }
    std::vector<TensorId> outputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const bool workspace = i == 1 && (case_.kind == OpKind::max_pool || case_.kind == OpKind::batch_norm);
      const bool integers = case_.kind == OpKind::count_correct || case_.kind == OpKind::argmax;
      outputs.push_back(graph().add_tensor("output" + std::to_string(i),
                                           workspace  ? ir::DType::u8
                                           : integers ? ir::DType::s32
                                                      : case_.output_type,
                                           shapes[i],
                                           workspace ? ir::Role::workspace : ir::Role::activation));
    }
    return outputs;
  }

  void add_backward() {
    if (autodiff::rule_of(case_.kind) == nullptr) return;
    const auto on_gradient = [&](ir::Graph&, TensorId parameter, TensorId gradient) {
      result_.gradients[parameter] = gradient;
    };
    const ir::IdList outputs = graph().ops.back().outputs;
    if (case_.kind == OpKind::cross_entropy || case_.kind == OpKind::linear_cross_entropy) {
      autodiff::append_backward(graph(), outputs[0], on_gradient);
      return;
    }
    const bool has_gradient = std::any_of(case_.inputs.begin(), case_.inputs.end(),
                                          [](const CaseInput& input) { return input.differentiable; });
    if (!has_gradient) return;
    for (const std::size_t i : seeded_outputs(outputs.size())) {
      const std::string name = graph().tensor(outputs[i]).name + ".grad";
      const ir::Shape shape = graph().tensor(outputs[i]).shape;
      result_.seeds.push_back({outputs[i], enter(name, shape, ir::Role::buffer, Fill::normal)});
    }
    autodiff::append_backward(graph(), result_.seeds, on_gradient);
  }

  /// The outputs that a gradient comes from.
  std::vector<std::size_t> seeded_outputs(std::size_t count) const {
    const auto* norm = case_.attrs.get_if<ir::LayerNormAttrs>();
    if (norm != nullptr && norm->add) return {0, count - 1};
    std::vector<std::size_t> all(case_.kind == OpKind::split || case_.kind == OpKind::pointwise ? count : 1);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  const OpCase& case_;
  CaseGraph result_;
};

}  // namespace

CaseGraph make_case_graph(const OpCase& op_case, bool backward) {
  return CaseBuilder(op_case).build(backward);
}

}  // namespace penstock::testing
