#include "kernels/cpu/request.h"

namespace penstock::kernels::cpu {

Selection select_layer_norm(const Request& request) {
  const dnnl::engine& cpu = request.engine->cpu;
  const auto& attrs = request.op.attrs_as<ir::NormAttrs>();
  const ir::Shape& shape = request.input(0).shape;
  const std::size_t last = shape.rank() - 1;
  const Dims rows{shape.elements(0, last), shape[last]};
  const MemoryDesc data = plain_desc(rows);
  const MemoryDesc statistic = plain_desc({rows[0]});
  const MemoryDesc scale = plain_desc({rows[1]});
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc forward(
      cpu, dnnl::prop_kind::forward_training, data, data, statistic, attrs.epsilon, flags, user_scratchpad());
  Selection selection = request.plain_selection();
  if (request.op.kind == ir::OpKind::layer_norm) {
    selection.kernel =
        std::make_shared<PrimitiveKernel>(request.engine, forward, dnnl::primitive(forward),
                                          std::vector<Binding>{{DNNL_ARG_SRC, false, 0, data},
                                                               {DNNL_ARG_SCALE, false, 1, scale},
                                                               {DNNL_ARG_SHIFT, false, 2, scale},
                                                               {DNNL_ARG_DST, true, 0, data},
                                                               {DNNL_ARG_MEAN, true, 1, statistic},
                                                               {DNNL_ARG_VARIANCE, true, 2, statistic}});
    return selection;
  }
  const dnnl::layer_normalization_backward::primitive_desc backward(cpu, dnnl::prop_kind::backward, data,
                                                                    data, data, statistic, attrs.epsilon,
                                                                    flags, forward, user_scratchpad());
  selection.kernel = std::make_shared<PrimitiveKernel>(
      request.engine, backward, dnnl::primitive(backward),
      std::vector<Binding>{{DNNL_ARG_SRC, false, 0, data},
                           {DNNL_ARG_DIFF_DST, false, 1, data},
                           {DNNL_ARG_SCALE, false, 2, scale},
                           {DNNL_ARG_SHIFT, false, 2, scale},  // asked for, not read
                           {DNNL_ARG_MEAN, false, 3, statistic},
                           {DNNL_ARG_VARIANCE, false, 4, statistic},
                           {DNNL_ARG_DIFF_SRC, true, 0, data},
                           {DNNL_ARG_DIFF_SCALE, true, 1, scale},
                           {DNNL_ARG_DIFF_SHIFT, true, 2, scale}});
  return selection;
}

}  // namespace penstock::kernels::cpu
