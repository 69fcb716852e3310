#include <algorithm>

#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::OpId;
using ir::TensorId;

class InPlaceSharer {
 public:
  explicit InPlaceSharer(Executable& executable)
      : graph_(executable.graph), kernels_(executable.kernels), readers_(ir::consumers(executable.graph)) {
    tenants_.assign(static_cast<std::size_t>(graph_.storages), 0);
    for (const ir::Tensor& tensor : graph_.tensors) ++tenants_[static_cast<std::size_t>(tensor.storage)];
  }

  void run() {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) share(static_cast<OpId>(i));
  }

 private:
  void share(OpId id) {
    const ir::Op& op = graph_.op(id);
    std::vector<ir::StorageId> taken;
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      ir::Tensor& output = graph_.tensor(op.outputs[o]);
      if (!may_move(output)) continue;
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const ir::Tensor& input = graph_.tensor(op.inputs[i]);
        const bool is_taken = std::find(taken.begin(), taken.end(), input.storage) != taken.end();
        if (is_taken || !kernels_[static_cast<std::size_t>(id)]->can_overwrite(o, i)) continue;
        if (input.size_bytes() != output.size_bytes() || !is_free_after(op.inputs[i], id)) continue;
        output.storage = input.storage;
        taken.push_back(input.storage);
        break;
      }
    }
  }

  /// A tensor with a storage of its own that does not outlive the step.
  bool may_move(const ir::Tensor& tensor) const {
    return tenants_[static_cast<std::size_t>(tensor.storage)] == 1 && !ir::is_state(tensor.role) &&
           tensor.role != ir::Role::input;
  }

  bool is_free_after(TensorId id, OpId op) const {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (ir::is_state(tensor.role) || tensor.role == ir::Role::input) return false;
    return readers_[static_cast<std::size_t>(id)].back() == op;
  }

  ir::Graph& graph_;
  const LongVector<std::shared_ptr<const kernels::Kernel>>& kernels_;
  Rows<OpId> readers_;
  std::vector<int> tenants_;  ///< by storage: how many tensors it had at first
};

}  // namespace

void share_in_place(Executable& executable) {
  InPlaceSharer(executable).run();
}

}  // namespace penstock::lower
