#include <fmt/format.h>

#include <map>
#include <tuple>

#include "base/error.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::kNone;
using ir::Layout;
using ir::Op;
using ir::TensorId;

class LayoutAssigner {
 public:
  LayoutAssigner(const ir::Graph& graph, kernels::Backend& backend, const Executable* fixed_state)
      : source_(graph), backend_(backend) {
    ir::Graph& out = result_.graph;
    out = graph;
    out.ops.clear();
    decided_.assign(graph.tensors.size(), false);
    if (fixed_state != nullptr) take_state(fixed_state->graph);
  }

  Executable run() {
    for (const Op& op : source_.ops) place(op);
    return std::move(result_);
  }

 private:
  ir::Tensor& tensor(TensorId id) { return result_.graph.tensor(id); }
  bool decided(TensorId id) const { return decided_[static_cast<std::size_t>(id)]; }

  void decide(TensorId id, const Layout& layout) {
    tensor(id).layout = layout;
    decided_[static_cast<std::size_t>(id)] = true;
  }

  void take_state(const ir::Graph& from) {
    std::map<std::string, const Layout*> layouts;
    for (const ir::Carried& state : from.carried) {
      layouts.emplace(from.tensor(state.begin).name, &from.tensor(state.begin).layout);
    }
    for (const ir::Carried& state : source_.carried) {
      const auto known = layouts.find(source_.tensor(state.begin).name);
      if (known != layouts.end()) decide(state.begin, *known->second);
    }
  }

  void place(const Op& source) {
    std::vector<const Layout*> given;
    for (const TensorId id : source.inputs) given.push_back(decided(id) ? &tensor(id).layout : nullptr);
    const kernels::Selection selection = backend_.select(result_.graph, source, given);
    Op op = source;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      op.inputs[i] = bring(op.inputs[i], selection.inputs[i], op.phase);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) decide(op.outputs[i], selection.outputs[i]);
    if (op.kind == ir::OpKind::output) {
      const auto port = static_cast<std::size_t>(op.attrs_as<ir::PortAttrs>().port);
      result_.graph.outputs[port].tensor = op.inputs[0];
    }
    append(std::move(op), selection.kernel);
  }

  void append(Op op, std::shared_ptr<const kernels::Kernel> kernel) {
    result_.graph.add_op(std::move(op));
    result_.scratch_bytes.push_back(kernel->scratch_bytes());
    result_.kernels.push_back(std::move(kernel));
  }

  /// `id` itself if it has the layout or has none yet, otherwise its copy in that layout.
  TensorId bring(TensorId id, const Layout& wanted, ir::Phase phase) {
    if (!decided(id)) decide(id, wanted);
    if (tensor(id).layout == wanted) return id;
    const bool state = ir::is_state(tensor(id).role);
    TensorId& copy =
        copies_.try_emplace({id, wanted.tag(), state ? static_cast<int>(phase) : -1}, kNone).first->second;
    if (copy != kNone) return copy;
    const ir::Tensor from = tensor(id);
    copy = result_.graph.add_tensor(from.name.with("@" + (wanted.is_plain() ? "plain" : wanted.tag())),
                                    from.dtype, from.shape,
                                    phase == ir::Phase::forward ? ir::Role::activation : ir::Role::gradient);
    decided_.push_back(false);
    decide(copy, wanted);
    append({ir::OpKind::reorder, phase, from.name.with(".reorder"), {id}, {copy}, ir::NoAttrs{}},
           backend_.reorder(from, from.layout, wanted));
    return copy;
  }

  const ir::Graph& source_;
  kernels::Backend& backend_;
  Executable result_;
  std::vector<bool> decided_;
  std::map<std::tuple<TensorId, std::string, int>, TensorId> copies_;
};

}  // namespace

Executable assign_layouts(const ir::Graph& graph, kernels::Backend& backend, const Executable* fixed_state) {
  return LayoutAssigner(graph, backend, fixed_state).run();
}

}  // namespace penstock::lower
