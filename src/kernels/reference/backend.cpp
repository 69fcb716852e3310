#include <cstring>

#include "base/error.h"
#include "kernels/kernel.h"
#include "kernels/native/exchange_kernels.h"
#include "kernels/reference/families.h"

namespace penstock::kernels {
namespace {

using ir::OpKind;
using reference::Body;
using reference::Described;

/// Max pooling's indices: for each element of y the s32 offset of its x within the plane.
constexpr const char* kIndicesTag = "reference:s32";

/// Ops that read element i of an input for the last time before they write element i of the output.
bool is_safe_in_place(OpKind kind, std::size_t output, std::size_t input) {
  switch (kind) {
    case OpKind::bias:
    case OpKind::activation:
    case OpKind::dropout:
    case OpKind::dropout_backward:
    case OpKind::reshape:
    case OpKind::cross_entropy_backward:
      return input == 0;
    case OpKind::gate:
    case OpKind::activation_backward:
    case OpKind::add:
    case OpKind::multiply:
      return true;
    case OpKind::batch_norm:
      return output == 0 && (input == 0 || input == 5);
    case OpKind::batch_norm_backward:
      return (output == 0 && input <= 1) || (output == 3 && input == 1);
    case OpKind::batch_norm_backward_sums:
      return output == 2 && input == 1;
    case OpKind::batch_norm_backward_data:
    case OpKind::batch_norm_silu_backward:
    case OpKind::batch_norm_silu_backward_data:
      return output == 0 && input <= 1;
    case OpKind::statistics_update:
      return input == output;
    case OpKind::sgd_update:
      return input == (output == 0 ? 0 : 2);
    case OpKind::adam_update:
      return input == (output == 0 ? 0 : output + 1);
    default:
      return false;
  }
}

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(OpKind kind, Body body) : kind_(kind), body_(std::move(body)) {}

  void run(const KernelArgs& args) const override { body_(args); }
  std::string implementation() const override { return "reference"; }
  bool can_overwrite(std::size_t output, std::size_t input) const override {
    return is_safe_in_place(kind_, output, input);
  }

 private:
  OpKind kind_;
  Body body_;
};

/// Plain loops on plain layouts: what every other backend is measured by. Keeps nothing between calls.
class ReferenceBackend : public Backend {
 public:
  std::string name() const override { return "reference"; }

  Selection select(const ir::Graph& graph, const ir::Op& op,
                   std::span<const ir::Layout* const> /*given*/) override {
    if (native::is_exchange(op.kind)) return native::select_exchange(graph, op);
    Described described{op, {}, {}, {}, {}};
    Selection selection;
    for (const ir::TensorId id : op.inputs) {
      described.in.push_back(graph.tensor(id).shape);
      described.in_types.push_back(graph.tensor(id).dtype);
      selection.inputs.emplace_back();
    }
    for (const ir::TensorId id : op.outputs) {
      described.out.push_back(graph.tensor(id).shape);
      described.out_types.push_back(graph.tensor(id).dtype);
      selection.outputs.emplace_back();
    }
    const auto indices = [](const ir::Shape& y) {
      return ir::Layout{kIndicesTag, y.elements() * ir::dtype_bytes(ir::DType::s32), nullptr};
    };
    if (op.kind == OpKind::max_pool && op.outputs.size() > 1)
      selection.outputs[1] = indices(described.out[0]);
    if (op.kind == OpKind::max_pool_backward) selection.inputs[1] = indices(described.in[0]);
    selection.kernel = op.kind == OpKind::reorder
                           ? copy_kernel(graph.tensor(op.inputs[0]).size_bytes())
                           : std::make_shared<ReferenceKernel>(op.kind, reference::make_body(described));
    return selection;
  }

  std::vector<std::shared_ptr<const Kernel>> variants(const ir::Graph& graph, const ir::Op& op) override {
    return {select(graph, op, {}).kernel};
  }

  std::shared_ptr<const Kernel> reorder(const ir::Tensor& tensor, const ir::Layout& from,
                                        const ir::Layout& to) override {
    require(from.tag() == to.tag(), "the reference backend knows one layout for each tensor");
    ir::Tensor copied = tensor;
    copied.layout = from;
    return copy_kernel(copied.size_bytes());
  }

 private:
  static std::shared_ptr<const Kernel> copy_kernel(std::int64_t size_bytes) {
    return std::make_shared<ReferenceKernel>(OpKind::reorder, [size_bytes](const KernelArgs& args) {
      std::memmove(args.outputs[0], args.inputs[0], static_cast<std::size_t>(size_bytes));
    });
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace penstock::kernels
