#include "base/error.h"
#include "kernels/cpu/request.h"

namespace penstock::kernels::cpu {
namespace {

using dnnl::prop_kind;

/// [..., K] as [rows, K].
MemoryDesc rows_desc(const ir::Shape& shape) {
  const std::size_t last = shape.rank() - 1;
  return plain_desc({shape.elements(0, last), shape[last]});
}

dnnl::inner_product_forward::primitive_desc forward_desc(const Engine& engine, const MemoryDesc& src,
                                                         const MemoryDesc& weights, const MemoryDesc& bias,
                                                         const MemoryDesc& dst,
                                                         const dnnl::primitive_attr& attr) {
  return {engine.cpu, prop_kind::forward_training, src, weights, bias, dst, attr};
}

}  // namespace

/// Weights stay in plain order: on the sizes that matter the blocked order is no faster, and rows of plain
/// weights can be taken one by one.
Selection select_linear(const Request& request) {
  if (has_own_linear(request))
    return has_wide_vectors() ? select_wide_linear(request) : select_own_linear(request);
  Selection selection = request.plain_selection();
  const Engine& engine = *request.engine;
  dnnl::primitive_attr attr = user_scratchpad();
  if (request.op.kind == ir::OpKind::linear) {
    const MemoryDesc src = rows_desc(request.input(0).shape);
    const MemoryDesc weights = rows_desc(request.input(1).shape);
    const bool has_bias = request.op.inputs.size() > 2;
    const MemoryDesc bias = has_bias ? plain_desc(request.input_dims(2)) : MemoryDesc{};
    const MemoryDesc dst = rows_desc(request.output(0).shape);
    if (request.op.attrs_as<ir::LinearAttrs>().relu) {
      dnnl::post_ops ops;
      ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
      attr.set_post_ops(ops);
    }
    const auto desc = forward_desc(engine, src, weights, bias, dst, attr);
    std::vector<Binding> bindings{
        {DNNL_ARG_SRC, false, 0, src}, {DNNL_ARG_WEIGHTS, false, 1, weights}, {DNNL_ARG_DST, true, 0, dst}};
    if (has_bias) bindings.push_back({DNNL_ARG_BIAS, false, 2, bias});
    selection.kernel =
        std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc), bindings);
    return selection;
  }
  if (request.op.kind == ir::OpKind::linear_backward_data) {
    const MemoryDesc dst = rows_desc(request.input(0).shape);
    const MemoryDesc weights = rows_desc(request.input(1).shape);
    const MemoryDesc src = rows_desc(request.output(0).shape);
    const auto hint = forward_desc(engine, src, weights, {}, dst, attr);
    const dnnl::inner_product_backward_data::primitive_desc desc(engine.cpu, src, weights, dst, hint, attr);
    selection.kernel =
        std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc),
                                          std::vector<Binding>{{DNNL_ARG_DIFF_DST, false, 0, dst},
                                                               {DNNL_ARG_WEIGHTS, false, 1, weights},
                                                               {DNNL_ARG_DIFF_SRC, true, 0, src}});
    return selection;
  }
  const MemoryDesc src = rows_desc(request.input(0).shape);
  const MemoryDesc dst = rows_desc(request.input(1).shape);
  const MemoryDesc weights = rows_desc(request.output(0).shape);
  const bool has_bias = request.op.outputs.size() > 1;
  const MemoryDesc bias = has_bias ? plain_desc(request.output_dims(1)) : MemoryDesc{};
  const auto hint = forward_desc(engine, src, weights, bias, dst, attr);
  const dnnl::inner_product_backward_weights::primitive_desc desc(engine.cpu, src, weights, bias, dst, hint,
                                                                  attr);
  std::vector<Binding> bindings{{DNNL_ARG_SRC, false, 0, src},
                                {DNNL_ARG_DIFF_DST, false, 1, dst},
                                {DNNL_ARG_DIFF_WEIGHTS, true, 0, weights}};
  if (has_bias) bindings.push_back({DNNL_ARG_DIFF_BIAS, true, 1, bias});
  selection.kernel = std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc), bindings);
  return selection;
}

/// Row-major operands; a transposed one is the same memory with its last two strides exchanged.
Selection select_matmul(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::MatmulAttrs>();
  const auto operand = [](const Dims& dims, bool transposed) {
    MemoryDesc desc = plain_desc(dims);
    if (!transposed) return desc;
    Dims view = dims;
    Dims strides = desc.get_strides();
    std::swap(view[view.size() - 1], view[view.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    return MemoryDesc(view, dnnl::memory::data_type::f32, strides);
  };
  const MemoryDesc a = operand(request.input_dims(0), attrs.transpose_a);
  const MemoryDesc b = operand(request.input_dims(1), attrs.transpose_b);
  const MemoryDesc y = plain_desc(request.output_dims(0));
  dnnl::primitive_attr attr = user_scratchpad();
  if (attrs.scale != 1) {
    dnnl::post_ops ops;
    ops.append_eltwise(dnnl::algorithm::eltwise_linear, attrs.scale, 0);
    attr.set_post_ops(ops);
  }
  const dnnl::matmul::primitive_desc desc(request.engine->cpu, a, b, y, attr);
  Selection selection = request.plain_selection();
  selection.kernel = std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{
          {DNNL_ARG_SRC, false, 0, a}, {DNNL_ARG_WEIGHTS, false, 1, b}, {DNNL_ARG_DST, true, 0, y}});
  return selection;
}

}  // namespace penstock::kernels::cpu
