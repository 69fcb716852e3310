#include "kernels/cpu/channel_layout.h"

namespace penstock::kernels::cpu {

Selection select_upsample(const Request& request) {
  const dnnl::engine& cpu = request.engine->cpu;
  const auto method = request.op.attrs_as<ir::UpsampleAttrs>().bilinear ? dnnl::algorithm::resampling_linear
                                                                        : dnnl::algorithm::resampling_nearest;
  Selection selection = request.plain_selection();
  selection.inputs[0] = request.given_or_plain(0);
  const MemoryDesc given = desc_of(selection.inputs[0], plain_desc(request.input_dims(0)));
  const MemoryDesc result = desc_like(request.output_dims(0), given);
  selection.outputs[0] = make_layout(result, plain_desc(request.output_dims(0)));
  if (request.op.kind == ir::OpKind::upsample) {
    const dnnl::resampling_forward::primitive_desc desc(cpu, dnnl::prop_kind::forward_training, method, given,
                                                        result, user_scratchpad());
    selection.kernel = std::make_shared<PrimitiveKernel>(
        request.engine, desc, dnnl::primitive(desc),
        std::vector<Binding>{{DNNL_ARG_SRC, false, 0, given}, {DNNL_ARG_DST, true, 0, result}});
    return selection;
  }
  const dnnl::resampling_forward::primitive_desc hint(cpu, dnnl::prop_kind::forward_training, method, result,
                                                      given);
  const dnnl::resampling_backward::primitive_desc desc(cpu, method, result, given, hint, user_scratchpad());
  selection.kernel = std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{{DNNL_ARG_DIFF_DST, false, 0, given}, {DNNL_ARG_DIFF_SRC, true, 0, result}});
  return selection;
}

}  // namespace penstock::kernels::cpu
