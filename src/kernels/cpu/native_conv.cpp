#include <algorithm>
#include <array>

#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/conv_problem.h"
#include "kernels/native/conv_kernels.h"

namespace penstock::kernels::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

/// [O, C, k...] as [O/b, C/b, k..., b in, b out] for blocks of `lanes`: also what the library likes best.
MemoryDesc blocked_weights(const Dims& dims, std::int64_t lanes) {
  constexpr std::array kEight{Tag::ABc8b8a, Tag::ABcd8b8a, Tag::ABcde8b8a};
  constexpr std::array kSixteen{Tag::ABc16b16a, Tag::ABcd16b16a, Tag::ABcde16b16a};
  return {dims, dnnl::memory::data_type::f32, (lanes == 8 ? kEight : kSixteen).at(dims.size() - 3)};
}

MemoryDesc blocked_activations(const Dims& dims, std::int64_t lanes) {
  constexpr std::array kEight{Tag::aBc8b, Tag::aBcd8b, Tag::aBcde8b};
  constexpr std::array kSixteen{Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b};
  return {dims, dnnl::memory::data_type::f32, (lanes == 8 ? kEight : kSixteen).at(dims.size() - 3)};
}

/// Whether the input is in blocks of so many channels, or plain and so reordered in any case.
bool fits_blocks(const Request& request, std::size_t input, std::int64_t lanes) {
  const auto view = view_of(request.input(input).shape, request.given_or_plain(input));
  return view && (view->block == lanes || view->block == 1);
}

native::ConvShape shape_of(const ConvProblem& problem, std::int64_t lanes) {
  const Dims src = problem.src.plain.get_dims();
  const Dims dst = problem.dst.plain.get_dims();
  const Dims weights = problem.weights.plain.get_dims();
  native::ConvShape shape;
  shape.images = src[0];
  shape.lanes = lanes;
  shape.in_blocks = src[1] / lanes;
  shape.out_blocks = dst[1] / lanes;
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
  if (!native::has_conv_kernels()) return std::nullopt;
  const std::int64_t lanes = native::winograd_lanes();
  if (request.op.kind == ir::OpKind::conv_transpose ||
      request.op.kind == ir::OpKind::conv_transpose_backward_data ||
      request.op.kind == ir::OpKind::conv_transpose_backward_weights) {
    return std::nullopt;
  }
  const ConvProblem problem(request);
  for (const ConvTensor* tensor : {&problem.src, &problem.dst}) {
    if (tensor->plain.get_dims()[1] % lanes != 0) return std::nullopt;
    if (!tensor->output && !fits_blocks(request, tensor->index, lanes)) return std::nullopt;
  }
  const native::ConvShape shape = shape_of(problem, lanes);
  const bool winograd = native::suits_winograd(shape);
  // Of the others, AVX-512's weight gradients are the library's.
  const bool own_gradient = problem.direction == ConvProblem::Direction::backward_weights && lanes == 8;
  if (!winograd && !own_gradient) return std::nullopt;
  Selection selection = request.plain_selection();
  const auto put = [&](const ConvTensor& tensor, const MemoryDesc& desc) {
    (tensor.output ? selection.outputs : selection.inputs)[tensor.index] = make_layout(desc, tensor.plain);
  };
  put(problem.src, blocked_activations(problem.src.plain.get_dims(), lanes));
  put(problem.weights, blocked_weights(problem.weights.plain.get_dims(), lanes));
  put(problem.dst, blocked_activations(problem.dst.plain.get_dims(), lanes));
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
