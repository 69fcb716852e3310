#include <array>

#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/native/pointwise_kernels.h"

namespace penstock::kernels::cpu {
namespace {

using dnnl::algorithm;
using ir::Activation;

/// In backward the result of forward is what is kept, except for gelu.
algorithm method_of(Activation function) {
  switch (function) {
    case Activation::gelu:
      return algorithm::eltwise_gelu_erf;
    case Activation::sigmoid:
      return algorithm::eltwise_logistic_use_dst_for_bwd;
    case Activation::tanh:
      return algorithm::eltwise_tanh_use_dst_for_bwd;
    case Activation::relu:
    case Activation::leaky_relu:
      break;
  }
  throw InternalError("this activation has a kernel of our own");
}

std::shared_ptr<const Kernel> forward_kernel(const Request& request, algorithm method,
                                             const MemoryDesc& data) {
  const dnnl::eltwise_forward::primitive_desc desc(request.engine->cpu, dnnl::prop_kind::forward_training,
                                                   method, data, data, 0.0F, 0.0F, user_scratchpad());
  return std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{{DNNL_ARG_SRC, false, 0, data}, {DNNL_ARG_DST, true, 0, data}},
      std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}});
}

std::shared_ptr<const Kernel> backward_kernel(const Request& request, algorithm method,
                                              const MemoryDesc& data) {
  const dnnl::eltwise_forward::primitive_desc hint(request.engine->cpu, dnnl::prop_kind::forward_training,
                                                   method, data, data, 0.0F, 0.0F, user_scratchpad());
  const dnnl::eltwise_backward::primitive_desc desc(request.engine->cpu, method, data, data, data, 0.0F, 0.0F,
                                                    hint, user_scratchpad());
  const int saved = method == algorithm::eltwise_gelu_erf ? DNNL_ARG_SRC : DNNL_ARG_DST;
  return std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{
          {saved, false, 0, data}, {DNNL_ARG_DIFF_DST, false, 1, data}, {DNNL_ARG_DIFF_SRC, true, 0, data}},
      std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}});
}

}  // namespace

Selection select_activation(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::ActivationAttrs>();
  const bool forward = request.op.kind == ir::OpKind::activation;
  const ir::Layout layout = forward ? common_layout(request, std::array<std::size_t, 1>{0})
                                    : common_layout(request, std::array<std::size_t, 2>{0, 1});
  Selection selection = request.plain_selection();
  for (ir::Layout& input : selection.inputs) input = layout;
  selection.outputs[0] = layout;
  if (attrs.function == Activation::relu || attrs.function == Activation::leaky_relu) {
    const float slope = attrs.function == Activation::relu ? 0 : attrs.alpha;
    const std::int64_t count = floats_of(request.output(0), layout);
    selection.kernel =
        forward ? native::make_leaky_relu(count, slope) : native::make_leaky_relu_backward(count, slope);
    return selection;
  }
  const MemoryDesc data = desc_of(layout, plain_desc(request.output_dims(0)));
  const algorithm method = method_of(attrs.function);
  selection.kernel = forward ? forward_kernel(request, method, data) : backward_kernel(request, method, data);
  return selection;
}

}  // namespace penstock::kernels::cpu
