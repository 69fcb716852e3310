#include "kernels/onednn/request.h"

namespace penstock::kernels::onednn {

Selection select_upsample(const Request& request) {
  const dnnl::engine& cpu = request.engine->cpu;
  const auto method = request.op.attrs_as<ir::UpsampleAttrs>().bilinear ? dnnl::algorithm::resampling_linear
                                                                        : dnnl::algorithm::resampling_nearest;
  Selection selection = request.plain_selection();
  selection.inputs[0] = request.given_or_plain(0);
  const MemoryDesc given = desc_of(selection.inputs[0], plain_desc(request.input_dims(0)));
  const MemoryDesc plain = plain_desc(request.output_dims(0));
  if (request.op.kind == ir::OpKind::upsample) {
    const dnnl::resampling_forward::primitive_desc desc(cpu, dnnl::prop_kind::forward_training, method, given,
                                                        any_desc(plain), user_scratchpad());
    selection.outputs[0] = make_layout(desc.dst_desc(), plain);
    selection.kernel = std::make_shared<PrimitiveKernel>(
        request.engine, desc, dnnl::primitive(desc),
        std::vector<Binding>{{DNNL_ARG_SRC, false, 0, given}, {DNNL_ARG_DST, true, 0, desc.dst_desc()}});
    return selection;
  }
  const dnnl::resampling_forward::primitive_desc hint(cpu, dnnl::prop_kind::forward_training, method,
                                                      any_desc(plain), given);
  const dnnl::resampling_backward::primitive_desc desc(cpu, method, any_desc(plain), given, hint,
                                                       user_scratchpad());
  selection.outputs[0] = make_layout(desc.diff_src_desc(), plain);
  selection.kernel = std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{{DNNL_ARG_DIFF_DST, false, 0, given},
                           {DNNL_ARG_DIFF_SRC, true, 0, desc.diff_src_desc()}});
  return selection;
}

}  // namespace penstock::kernels::onednn
