#include <algorithm>

#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/conv_problem.h"
#include "kernels/native/conv_kernels.h"

namespace penstock::kernels::cpu {
namespace {

/// [O, C, k...] as [O/8, C/8, k..., 8 in, 8 out]: also what the library likes best for AVX2.
MemoryDesc blocked_weights(const Dims& dims) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = dims.size() == 3 ? Tag::ABc8b8a : dims.size() == 4 ? Tag::ABcd8b8a : Tag::ABcde8b8a;
  return {dims, dnnl::memory::data_type::f32, tag};
}

MemoryDesc blocked_activations(const Dims& dims) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = dims.size() == 3 ? Tag::aBc8b : dims.size() == 4 ? Tag::aBcd8b : Tag::aBcde8b;
  return {dims, dnnl::memory::data_type::f32, tag};
}

/// Whether the input is in blocks of eight channels, or plain and so reordered in any case.
bool fits_blocks(const Request& request, std::size_t input) {
  const auto view = view_of(request.input(input).shape, request.given_or_plain(input));
  return view && (view->block == 8 || view->block == 1);
}

native::ConvShape shape_of(const ConvProblem& problem) {
  const Dims src = problem.src.plain.get_dims();
  const Dims dst = problem.dst.plain.get_dims();
  const Dims weights = problem.weights.plain.get_dims();
  native::ConvShape shape;
  shape.images = src[0];
  shape.in_blocks = src[1] / 8;
  shape.out_blocks = dst[1] / 8;
  for (std::size_t i = 2; i < src.size(); ++i) {
    const std::size_t axis = i + 3 - src.size();
    shape.in[axis] = src[i];
    shape.out[axis] = dst[i];
    shape.kernel[axis] = weights[i];
    shape.stride[axis] = problem.stride[i - 2];
    shape.dilation[axis] = problem.dilation[i - 2] + 1;
    shape.padding[axis] = problem.padding_begin[i - 2];
  }
  return shape;
}

/// Channels that lie side by side in the input's layout, where that is a multiple of eight; otherwise 0.
std::int64_t channels_together(const Request& request, std::size_t input) {
  const auto view = view_of(request.input(input).shape, request.given_or_plain(input));
  return view && view->block > 1 ? view->block : 0;
}

MemoryDesc images_in_blocks(const Dims& dims, std::int64_t block) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = block == 8 ? Tag::aBcd8b : block == 16 ? Tag::aBcd16b : Tag::acdb;
  return {dims, dnnl::memory::data_type::f32, tag};
}

/// The weights' gradient of a depthwise convolution, which the library has as generated code for 3x3 only. It
/// takes images in the blocks in which the forward convolution had them.
std::optional<Selection> select_depthwise(const Request& request) {
  if (request.op.kind != ir::OpKind::conv_backward_weights) return std::nullopt;
  const ConvProblem problem(request);
  const Dims src = problem.src.plain.get_dims();
  const Dims dst = problem.dst.plain.get_dims();
  const Dims weights = problem.weights.plain.get_dims();
  const bool depthwise = src.size() == 4 && weights[0] == src[1] && weights[0] == dst[1] && src[1] % 8 == 0;
  if (!depthwise || (weights[3] == 3 && weights[4] == 3)) return std::nullopt;
  std::int64_t block = channels_together(request, problem.src.index);
  if (block == 0) block = channels_together(request, problem.dst.index);
  if (block == 0) block = 8;
  if (block != 8 && block != 16 && block != src[1]) return std::nullopt;
  native::DepthwiseGradient shape;
  shape.images = src[0];
  shape.blocks = src[1] / 8;
  shape.pixel = block;
  shape.pixel_blocks = (src[1] + block - 1) / block;
  shape.in_height = src[2], shape.in_width = src[3];
  shape.out_height = dst[2], shape.out_width = dst[3];
  shape.kernel_height = weights[3], shape.kernel_width = weights[4];
  shape.stride_height = problem.stride[0], shape.stride_width = problem.stride[1];
  shape.dilation_height = problem.dilation[0] + 1, shape.dilation_width = problem.dilation[1] + 1;
  shape.top = problem.padding_begin[0], shape.left = problem.padding_begin[1];
  Selection selection = request.plain_selection();
  selection.inputs[problem.src.index] = make_layout(images_in_blocks(src, block), problem.src.plain);
  selection.inputs[problem.dst.index] = make_layout(images_in_blocks(dst, block), problem.dst.plain);
  const MemoryDesc blocked{weights, dnnl::memory::data_type::f32, dnnl::memory::format_tag::Abcde8a};
  selection.outputs[0] = make_layout(blocked, problem.weights.plain);
  selection.kernel = native::make_depthwise_backward_weights(shape, problem.bias.has_value());
  return selection;
}

}  // namespace

std::optional<Selection> select_native_conv(const Request& request) {
  if (request.op.attrs_as<ir::ConvAttrs>().groups != 1) {
    auto grouped = select_grouped_conv(request);
    return grouped ? std::move(grouped) : select_depthwise(request);
  }
  if (!native::has_conv_kernels() || has_wide_vectors()) return std::nullopt;
  if (request.op.kind == ir::OpKind::conv_transpose ||
      request.op.kind == ir::OpKind::conv_transpose_backward_data ||
      request.op.kind == ir::OpKind::conv_transpose_backward_weights) {
    return std::nullopt;
  }
  const ConvProblem problem(request);
  for (const ConvTensor* tensor : {&problem.src, &problem.dst}) {
    if (tensor->plain.get_dims()[1] % 8 != 0) return std::nullopt;
    if (!tensor->output && !fits_blocks(request, tensor->index)) return std::nullopt;
  }
  const native::ConvShape shape = shape_of(problem);
  const bool winograd = native::suits_winograd(shape);
  if (!winograd && problem.direction != ConvProblem::Direction::backward_weights) return std::nullopt;
  Selection selection = request.plain_selection();
  const auto put = [&](const ConvTensor& tensor, const MemoryDesc& desc) {
    (tensor.output ? selection.outputs : selection.inputs)[tensor.index] = make_layout(desc, tensor.plain);
  };
  put(problem.src, blocked_activations(problem.src.plain.get_dims()));
  put(problem.weights, blocked_weights(problem.weights.plain.get_dims()));
  put(problem.dst, blocked_activations(problem.dst.plain.get_dims()));
  switch (problem.direction) {
    case ConvProblem::Direction::forward:
      selection.kernel = native::make_winograd_conv(shape, problem.relu);
      break;
    case ConvProblem::Direction::backward_data:
      selection.kernel = native::make_winograd_backward_data(shape);
      break;
    case ConvProblem::Direction::backward_weights:
      selection.kernel = winograd ? native::make_winograd_backward_weights(shape, problem.bias.has_value())
                                  : native::make_conv_backward_weights(shape, problem.bias.has_value());
  }
  return selection;
}

}  // namespace penstock::kernels::cpu
