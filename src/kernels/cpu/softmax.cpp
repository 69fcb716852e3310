#include "kernels/cpu/request.h"

namespace penstock::kernels::cpu {

Selection select_softmax(const Request& request) {
  const dnnl::engine& cpu = request.engine->cpu;
  const auto axis = static_cast<int>(request.op.attrs_as<ir::AxisAttrs>().axis);
  const MemoryDesc data = plain_desc(request.output_dims(0));
  const bool logarithm =
      request.op.kind == ir::OpKind::log_softmax || request.op.kind == ir::OpKind::log_softmax_backward;
  const auto method = logarithm ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  const dnnl::softmax_forward::primitive_desc forward(cpu, dnnl::prop_kind::forward_training, method, data,
                                                      data, axis, user_scratchpad());
  Selection selection = request.plain_selection();
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  if (request.op.kind == ir::OpKind::softmax || request.op.kind == ir::OpKind::log_softmax) {
    selection.kernel = std::make_shared<PrimitiveKernel>(
        request.engine, forward, dnnl::primitive(forward),
        std::vector<Binding>{{DNNL_ARG_SRC, false, 0, data}, {DNNL_ARG_DST, true, 0, data}}, Pairs{{0, 0}});
    return selection;
  }
  const dnnl::softmax_backward::primitive_desc backward(cpu, method, data, data, data, axis, forward,
                                                        user_scratchpad());
  selection.kernel =
      std::make_shared<PrimitiveKernel>(request.engine, backward, dnnl::primitive(backward),
                                        std::vector<Binding>{{DNNL_ARG_DST, false, 0, data},
                                                             {DNNL_ARG_DIFF_DST, false, 1, data},
                                                             {DNNL_ARG_DIFF_SRC, true, 0, data}},
                                        Pairs{{0, 1}});
  return selection;
}

}  // namespace penstock::kernels::cpu
