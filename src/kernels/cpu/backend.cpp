#include <map>

#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/half_layout.h"
#include "kernels/cpu/request.h"
#include "kernels/native/exchange_kernels.h"

namespace penstock::kernels {
namespace cpu {
namespace {

using ir::OpKind;
using Selector = Selection (*)(const Request&);

Selector selector_of(OpKind kind) {
  switch (kind) {
    case OpKind::input:
    case OpKind::output:
      return select_port;
    case OpKind::conv:
    case OpKind::conv_backward_data:
    case OpKind::conv_backward_weights:
    case OpKind::conv_transpose:
    case OpKind::conv_transpose_backward_data:
    case OpKind::conv_transpose_backward_weights:
      return select_conv;
    case OpKind::linear:
    case OpKind::linear_backward_data:
    case OpKind::linear_backward_weights:
      return select_linear;
    case OpKind::matmul:
      return select_matmul;
    case OpKind::bias:
    case OpKind::bias_backward:
      return select_bias;
    case OpKind::batch_norm_statistics:
    case OpKind::batch_norm:
    case OpKind::batch_norm_backward:
    case OpKind::batch_norm_backward_sums:
    case OpKind::batch_norm_backward_data:
    case OpKind::batch_norm_silu_backward:
    case OpKind::batch_norm_silu_backward_sums:
    case OpKind::batch_norm_silu_backward_data:
      return select_batch_norm;
    case OpKind::combine_statistics:
      return select_combine_statistics;
    case OpKind::statistics_update:
      return select_statistics_update;
    case OpKind::attention:
    case OpKind::attention_backward:
    case OpKind::layer_norm:
    case OpKind::layer_norm_backward:
    case OpKind::embedding:
    case OpKind::embedding_backward:
    case OpKind::position_backward:
    case OpKind::rotary:
    case OpKind::gate:
    case OpKind::gate_backward:
    case OpKind::linear_cross_entropy:
    case OpKind::linear_cross_entropy_backward:
    case OpKind::sum_squares:
    case OpKind::clip_scale:
      return select_text;
    case OpKind::activation:
    case OpKind::activation_backward:
      return select_activation;
    case OpKind::max_pool:
    case OpKind::max_pool_backward:
    case OpKind::avg_pool:
    case OpKind::avg_pool_backward:
      return select_pool;
    case OpKind::global_avg_pool:
    case OpKind::global_avg_pool_backward:
      return select_global_avg_pool;
    case OpKind::lrn:
    case OpKind::lrn_backward:
      return select_lrn;
    case OpKind::dropout:
    case OpKind::dropout_backward:
      return select_dropout;
    case OpKind::add:
    case OpKind::multiply:
      return select_pointwise;
    case OpKind::concat:
    case OpKind::split:
      return select_concat;
    case OpKind::pad:
    case OpKind::crop:
      return select_pad;
    case OpKind::upsample:
    case OpKind::upsample_backward:
      return select_upsample;
    case OpKind::reshape:
      return select_reshape;
    case OpKind::transpose:
      return select_transpose;
    case OpKind::softmax:
    case OpKind::softmax_backward:
    case OpKind::log_softmax:
    case OpKind::log_softmax_backward:
      return select_softmax;
    case OpKind::pointwise:
      return select_program;
    case OpKind::reduce:
      return select_reduce;
    case OpKind::argmax:
    case OpKind::slice:
    case OpKind::slice_backward:
    case OpKind::gather:
    case OpKind::gather_backward:
      return select_index;
    case OpKind::nll_loss:
    case OpKind::nll_loss_backward:
      return select_nll;
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_backward:
    case OpKind::count_correct:
      return select_loss;
    case OpKind::sgd_update:
    case OpKind::adam_update:
      return select_update;
    case OpKind::reduce_start:
    case OpKind::reduce_wait:
    case OpKind::gather_start:
    case OpKind::gather_wait:
    case OpKind::take_slice:
    case OpKind::reorder:
      break;
  }
  throw InternalError("reorders and exchanges have no selector");
}

bool is_conv(OpKind kind) {
  return selector_of(kind) == select_conv;
}

/// Kernels from oneDNN and our own vector loops. Keeps every kernel it made, by description of the op.
class CpuBackend : public Backend {
 public:
  CpuBackend() {
    // Our own cache holds each kernel once; a second one inside the library would only cost memory.
    dnnl::set_primitive_cache_capacity(0);
  }

  std::string name() const override { return "cpu"; }

  Selection select(const ir::Graph& graph, const ir::Op& op,
                   std::span<const ir::Layout* const> given) override {
    if (op.kind == OpKind::reorder) {
      const ir::Layout from = given[0] != nullptr ? *given[0] : ir::Layout{};
      return {reorder(graph.tensor(op.inputs[0]), from, {}), {from}, {ir::Layout{}}};
    }
    if (native::is_exchange(op.kind)) return native::select_exchange(graph, op);
    const Request request{graph, op, given, engine_};
    std::string key = op_key(graph, op, given);
    if (op.kind == OpKind::global_avg_pool_backward) key += layout_key(pooled_layout(request));
    const auto known = selections_.find(key);
    if (known != selections_.end()) return known->second;
    Selection selection = selector_of(op.kind)(request);
    defaults_.emplace(fixed_key(graph, op, selection.inputs, selection.outputs), selection.kernel);
    return selections_.emplace(key, std::move(selection)).first->second;
  }

  std::vector<std::shared_ptr<const Kernel>> variants(const ir::Graph& graph, const ir::Op& op) override {
    if (op.kind == OpKind::reorder) {
      const ir::Tensor& from = graph.tensor(op.inputs[0]);
      return {reorder(from, from.layout, graph.tensor(op.outputs[0]).layout)};
    }
    if (native::is_exchange(op.kind)) return {native::select_exchange(graph, op).kernel};
    std::vector<ir::Layout> inputs;
    std::vector<ir::Layout> outputs;
    std::vector<const ir::Layout*> given;
    for (const ir::TensorId id : op.inputs) inputs.push_back(graph.tensor(id).layout);
    for (const ir::TensorId id : op.outputs) outputs.push_back(graph.tensor(id).layout);
    for (const ir::Layout& layout : inputs) given.push_back(&layout);
    const std::string key = fixed_key(graph, op, inputs, outputs);
    const auto known = variants_.find(key);
    if (known != variants_.end()) return known->second;
    const auto selected = defaults_.find(key);
    Variants list{selected != defaults_.end() ? selected->second : select(graph, op, given).kernel};
    if (is_conv(op.kind)) {
      for (auto& kernel : conv_variants({graph, op, given, engine_})) {
        if (kernel->implementation() != list[0]->implementation()) list.push_back(std::move(kernel));
      }
    }
    return variants_.emplace(key, std::move(list)).first->second;
  }

  std::shared_ptr<const Kernel> reorder(const ir::Tensor& tensor, const ir::Layout& from,
                                        const ir::Layout& to) override {
    const std::string key = tensor.shape.to_string() + layout_key(from) + layout_key(to);
    auto& kernel = reorders_[key];
    if (kernel == nullptr)
      kernel =
          is_half(from) || is_half(to) ? convert(tensor, from, to) : make_reorder(engine_, tensor, from, to);
    return kernel;
  }

 private:
  /// Between bfloat16 and float32, which also may lie in another order.
  std::shared_ptr<const Kernel> convert(const ir::Tensor& tensor, const ir::Layout& from,
                                        const ir::Layout& to) {
    require(is_half(from) != is_half(to), "what is in bfloat16 is read and written in float32");
    const ir::Layout& order = order_of(is_half(from) ? from : to);
    const std::int64_t count = floats_of(tensor, order);
    if (is_half(from)) {
      if (order == to) return make_widening(count);
      return make_chain(make_widening(count), reorder(tensor, order, to), 4 * count);
    }
    if (order == from) return make_narrowing(count);
    return make_chain(reorder(tensor, from, order), make_narrowing(count), 4 * count);
  }

  static std::string layout_key(const ir::Layout& layout) {
    return "|" + layout.tag() + ":" + std::to_string(layout.size_bytes());
  }

  static std::string tensor_key(const ir::Tensor& tensor) {
    const std::string shape = tensor.shape.to_string();
    return tensor.dtype == ir::DType::f32 ? shape : ir::dtype_name(tensor.dtype) + shape;
  }

  static std::string shapes_key(const ir::Graph& graph, const ir::Op& op) {
    std::string key = std::string(ir::op_name(op.kind)) + "(" + ir::attrs_text(op.attrs) + ")";
    for (const ir::TensorId id : op.inputs) key += tensor_key(graph.tensor(id));
    key += "->";
    for (const ir::TensorId id : op.outputs) key += tensor_key(graph.tensor(id));
    return key;
  }

  static std::string op_key(const ir::Graph& graph, const ir::Op& op,
                            std::span<const ir::Layout* const> given) {
    std::string key = shapes_key(graph, op);
    for (const ir::Layout* layout : given) key += layout != nullptr ? layout_key(*layout) : "|?";
    return key;
  }

  static std::string fixed_key(const ir::Graph& graph, const ir::Op& op,
                               const std::vector<ir::Layout>& inputs,
                               const std::vector<ir::Layout>& outputs) {
    std::string key = shapes_key(graph, op);
    for (const ir::Layout& layout : inputs) key += layout_key(layout);
    key += "->";
    for (const ir::Layout& layout : outputs) key += layout_key(layout);
    return key;
  }

  std::shared_ptr<const Engine> engine_ = std::make_shared<Engine>();
  std::map<std::string, Selection> selections_;
  std::map<std::string, std::shared_ptr<const Kernel>> defaults_;
  std::map<std::string, Variants> variants_;
  std::map<std::string, std::shared_ptr<const Kernel>> reorders_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() {
  return std::make_unique<cpu::CpuBackend>();
}

}  // namespace penstock::kernels
