#include "kernels/cpu/channel_layout.h"

namespace penstock::kernels::cpu {
namespace {

using dnnl::algorithm;
using ir::OpKind;

/// A pooling op in the library's terms.
struct PoolProblem {
  explicit PoolProblem(const Request& request)
      : engine(*request.engine),
        attrs(request.op.attrs_as<ir::PoolAttrs>()),
        max(request.op.kind == OpKind::max_pool || request.op.kind == OpKind::max_pool_backward),
        method(max                       ? algorithm::pooling_max
               : attrs.count_include_pad ? algorithm::pooling_avg_include_padding
                                         : algorithm::pooling_avg_exclude_padding),
        keeps_indices(max && (request.op.kind == OpKind::max_pool_backward || request.op.outputs.size() > 1)),
        dilation(attrs.kernel.size(), 0) {}

  dnnl::pooling_forward::primitive_desc forward(const MemoryDesc& src, const MemoryDesc& dst) const {
    return {engine.cpu,
            max && !keeps_indices ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
            method,
            src,
            dst,
            attrs.stride,
            attrs.kernel,
            dilation,
            attrs.padding_begin,
            attrs.padding_end,
            user_scratchpad()};
  }
  dnnl::pooling_backward::primitive_desc backward(const MemoryDesc& src, const MemoryDesc& dst) const {
    return {engine.cpu,
            method,
            src,
            dst,
            attrs.stride,
            attrs.kernel,
            dilation,
            attrs.padding_begin,
            attrs.padding_end,
            forward(src, dst),
            user_scratchpad()};
  }

  const Engine& engine;
  const ir::PoolAttrs& attrs;
  bool max;
  algorithm method;
  bool keeps_indices;
  Dims dilation;
};

Selection select_forward(const Request& request) {
  const PoolProblem problem(request);
  Selection selection = request.plain_selection();
  const MemoryDesc src = desc_of(request.given_or_plain(0), plain_desc(request.input_dims(0)));
  const MemoryDesc plain_dst = plain_desc(request.output_dims(0));
  const MemoryDesc dst = desc_like(request.output_dims(0), src);
  const auto desc = problem.forward(src, dst);
  std::vector<Binding> bindings{{DNNL_ARG_SRC, false, 0, src}, {DNNL_ARG_DST, true, 0, dst}};
  selection.inputs[0] = request.given_or_plain(0);
  selection.outputs[0] = make_layout(dst, plain_dst);
  if (problem.keeps_indices) {
    const MemoryDesc workspace = desc.workspace_desc();
    bindings.push_back({DNNL_ARG_WORKSPACE, true, 1, workspace});
    selection.outputs[1] = make_workspace_layout(workspace, dst);
  }
  selection.kernel = std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc), bindings);
  return selection;
}

Selection select_backward(const Request& request) {
  const PoolProblem problem(request);
  Selection selection = request.plain_selection();
  const MemoryDesc plain_dst = plain_desc(request.input_dims(0));
  const MemoryDesc plain_src = plain_desc(request.output_dims(0));
  // The workspace says in which layout the pooled tensor was; its gradient must have the same.
  const MemoryDesc dst =
      problem.max ? descriptor_of(*request.given[1]).owner : desc_of(request.given_or_plain(0), plain_dst);
  const MemoryDesc src = desc_like(request.output_dims(0), dst);
  const auto desc = problem.backward(src, dst);
  std::vector<Binding> bindings{{DNNL_ARG_DIFF_DST, false, 0, dst}, {DNNL_ARG_DIFF_SRC, true, 0, src}};
  selection.inputs[0] = make_layout(dst, plain_dst);
  selection.outputs[0] = make_layout(src, plain_src);
  if (problem.max) {
    bindings.push_back({DNNL_ARG_WORKSPACE, false, 1, desc.workspace_desc()});
    selection.inputs[1] = *request.given[1];
  }
  selection.kernel = std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc), bindings);
  return selection;
}

}  // namespace

Selection select_pool(const Request& request) {
  const bool forward = request.op.kind == OpKind::max_pool || request.op.kind == OpKind::avg_pool;
  return forward ? select_forward(request) : select_backward(request);
}

}  // namespace penstock::kernels::cpu
