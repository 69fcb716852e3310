#include "kernels/cpu/conv_problem.h"

#include "base/error.h"

namespace penstock::kernels::cpu {
namespace {

using ir::OpKind;

/// [O, C/g, k...] as the library sees it: [(g,) O/g, C/g, k...].
MemoryDesc conv_weights(const Dims& dims, std::int64_t groups) {
  if (groups == 1) return plain_desc(dims);
  Dims grouped{groups, dims[0] / groups};
  grouped.insert(grouped.end(), dims.begin() + 1, dims.end());
  return plain_desc(grouped);
}

/// [C, O/g, k...] as the library sees it: [(g,) O/g, C/g, k...], with the strides of the former.
MemoryDesc transposed_weights(const Dims& dims, std::int64_t groups) {
  std::int64_t kernel = 1;
  for (std::size_t i = 2; i < dims.size(); ++i) kernel *= dims[i];
  const std::int64_t in = dims[0] / groups;
  const std::int64_t out = dims[1];
  Dims view{out, in};
  Dims strides{kernel, out * kernel};
  if (groups > 1) {
    view.insert(view.begin(), groups);
    strides.insert(strides.begin(), in * out * kernel);
  }
  for (std::size_t i = 2; i < dims.size(); ++i) {
    kernel /= dims[i];
    view.push_back(dims[i]);
    strides.push_back(kernel);
  }
  return {view, dnnl::memory::data_type::f32, strides};
}

}  // namespace

ConvProblem::ConvProblem(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::ConvAttrs>();
  const OpKind kind = request.op.kind;
  transposed = kind == OpKind::conv_transpose || kind == OpKind::conv_transpose_backward_data ||
               kind == OpKind::conv_transpose_backward_weights;
  relu = attrs.relu;
  const auto weights_desc = [&](const Dims& dims) {
    return transposed ? transposed_weights(dims, attrs.groups) : conv_weights(dims, attrs.groups);
  };
  const auto in = [&](std::size_t i) { return ConvTensor{plain_desc(request.input_dims(i)), false, i}; };
  const auto out = [&](std::size_t i) { return ConvTensor{plain_desc(request.output_dims(i)), true, i}; };
  if (kind == OpKind::conv || kind == OpKind::conv_transpose) {
    src = in(0);
    weights = {weights_desc(request.input_dims(1)), false, 1};
    if (request.op.inputs.size() > 2) bias = in(2);
    dst = out(0);
  } else if (kind == OpKind::conv_backward_data || kind == OpKind::conv_transpose_backward_data) {
    direction = Direction::backward_data;
    dst = in(0);
    weights = {weights_desc(request.input_dims(1)), false, 1};
    src = out(0);
  } else {
    direction = Direction::backward_weights;
    src = in(0);
    dst = in(1);
    weights = {weights_desc(request.output_dims(0)), true, 0};
    if (request.op.outputs.size() > 1) bias = out(1);
  }
  stride = attrs.stride;
  dilation = attrs.dilation;
  for (auto& d : dilation) d -= 1;  // the library counts the gaps
  padding_begin = attrs.padding_begin;
  padding_end = attrs.padding_end;
  if (transposed) {
    // What the output's extent leaves: padding_end less output_padding.
    const Dims src_dims = src.plain.get_dims();
    const Dims dst_dims = dst.plain.get_dims();
    const Dims kernel = weights.plain.get_dims();
    for (std::size_t i = 0; i < stride.size(); ++i) {
      const std::int64_t extent = kernel[kernel.size() - stride.size() + i];
      const std::int64_t full = (src_dims[i + 2] - 1) * stride[i] + (extent - 1) * (dilation[i] + 1) + 1;
      padding_end[i] = full - padding_begin[i] - dst_dims[i + 2];
    }
  }
  if (direction == Direction::forward) return;
  const MemoryDesc bias_desc = bias ? bias->plain : MemoryDesc{};
  const auto fill = [&]<typename Hint>(Hint& hint, dnnl::algorithm algorithm) {
    hint = Hint(request.engine->cpu, dnnl::prop_kind::forward_training, algorithm, any_desc(src.plain),
                any_desc(weights.plain), bias_desc, any_desc(dst.plain), stride, dilation, padding_begin,
                padding_end);
  };
  if (transposed) {
    fill(deconv_hint, dnnl::algorithm::deconvolution_direct);
  } else {
    fill(conv_hint, dnnl::algorithm::convolution_direct);
  }
}

dnnl::primitive_desc ConvProblem::describe(const Engine& engine, const MemoryDesc& src_desc,
                                           const MemoryDesc& weights_desc, const MemoryDesc& dst_desc) const {
  using dnnl::algorithm;
  using dnnl::prop_kind;
  const dnnl::engine& cpu = engine.cpu;
  dnnl::primitive_attr attr = user_scratchpad();
  const MemoryDesc bias_desc = bias ? bias->plain : MemoryDesc{};
  if (direction == Direction::forward) {
    if (relu) {
      dnnl::post_ops ops;
      ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
      attr.set_post_ops(ops);
    }
    if (transposed) {
      return dnnl::deconvolution_forward::primitive_desc(
          cpu, prop_kind::forward_training, algorithm::deconvolution_direct, src_desc, weights_desc,
          bias_desc, dst_desc, stride, dilation, padding_begin, padding_end, attr, true);
    }
    return dnnl::convolution_forward::primitive_desc(
        cpu, prop_kind::forward_training, algorithm::convolution_direct, src_desc, weights_desc, bias_desc,
        dst_desc, stride, dilation, padding_begin, padding_end, attr, true);
  }
  if (transposed && direction == Direction::backward_data) {
    return dnnl::deconvolution_backward_data::primitive_desc(
        cpu, algorithm::deconvolution_direct, src_desc, weights_desc, dst_desc, stride, dilation,
        padding_begin, padding_end, deconv_hint, attr, true);
  }
  if (transposed) {
    return dnnl::deconvolution_backward_weights::primitive_desc(
        cpu, algorithm::deconvolution_direct, src_desc, weights_desc, bias_desc, dst_desc, stride, dilation,
        padding_begin, padding_end, deconv_hint, attr, true);
  }
  if (direction == Direction::backward_data) {
    return dnnl::convolution_backward_data::primitive_desc(cpu, algorithm::convolution_direct, src_desc,
                                                           weights_desc, dst_desc, stride, dilation,
                                                           padding_begin, padding_end, conv_hint, attr, true);
  }
  return dnnl::convolution_backward_weights::primitive_desc(
      cpu, algorithm::convolution_direct, src_desc, weights_desc, bias_desc, dst_desc, stride, dilation,
      padding_begin, padding_end, conv_hint, attr, true);
}

MemoryDesc ConvProblem::src_of(const dnnl::primitive_desc& desc) const {
  return desc.query_md(direction == Direction::backward_data ? dnnl::query::diff_src_md
                                                             : dnnl::query::src_md);
}

MemoryDesc ConvProblem::weights_of(const dnnl::primitive_desc& desc) const {
  return desc.query_md(direction == Direction::backward_weights ? dnnl::query::diff_weights_md
                                                                : dnnl::query::weights_md);
}

MemoryDesc ConvProblem::dst_of(const dnnl::primitive_desc& desc) const {
  return desc.query_md(direction == Direction::forward ? dnnl::query::dst_md : dnnl::query::diff_dst_md);
}

std::shared_ptr<const Kernel> ConvProblem::make_kernel(const std::shared_ptr<const Engine>& engine,
                                                       const dnnl::primitive_desc& desc) const {
  const bool forward = direction == Direction::forward;
  const bool data = direction == Direction::backward_data;
  const bool grads = direction == Direction::backward_weights;
  std::vector<Binding> bindings{
      {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, src.output, src.index, src_of(desc)},
      {grads ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weights.output, weights.index, weights_of(desc)},
      {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, dst.output, dst.index, dst_of(desc)}};
  if (bias)
    bindings.push_back({grads ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, bias->output, bias->index, bias->plain});
  return std::make_shared<PrimitiveKernel>(engine, desc, dnnl::primitive(desc), bindings);
}

}  // namespace penstock::kernels::cpu
