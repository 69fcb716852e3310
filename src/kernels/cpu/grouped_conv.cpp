#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/conv_problem.h"
#include "kernels/native/conv_kernels.h"
#include "kernels/native/wide_table.h"

namespace penstock::kernels::cpu {
namespace {

MemoryDesc blocked_images(const Dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::aBcd16b};
}

/// Whether the input is in blocks of channels, or plain and so reordered in any case.
bool fits_blocks(const Request& request, const ConvTensor& tensor) {
  if (tensor.output) return true;
  const auto view = view_of(request.input(tensor.index).shape, request.given_or_plain(tensor.index));
  return view && view->block <= native::GroupedShape::kBlock;
}

}  // namespace

/// The library has nothing for groups below a whole block of channels but AVX2's code, in blocks of eight;
/// all that follows would take over these.
std::optional<Selection> select_grouped_conv(const Request& request) {
  if (native::wide() == nullptr) return std::nullopt;
  const ConvProblem problem(request);
  const Dims src = problem.src.plain.get_dims();
  const Dims dst = problem.dst.plain.get_dims();
  const Dims weights = problem.weights.plain.get_dims();
  if (problem.transposed || src.size() != 4 || weights.size() != 5 || src[1] % 16 != 0 || src[1] != dst[1])
    return std::nullopt;
  const std::int64_t group = weights[1];
  if (group != 2 && group != 4 && group != 8) return std::nullopt;
  native::GroupedShape shape;
  shape.images = src[0];
  shape.blocks = src[1] / native::GroupedShape::kBlock;
  shape.group = group;
  shape.in_height = src[2], shape.in_width = src[3];
  shape.out_height = dst[2], shape.out_width = dst[3];
  shape.kernel_height = weights[3], shape.kernel_width = weights[4];
  shape.stride_height = problem.stride[0], shape.stride_width = problem.stride[1];
  shape.top = problem.padding_begin[0], shape.left = problem.padding_begin[1];
  const bool plain_steps = problem.dilation[0] == 0 && problem.dilation[1] == 0;
  const bool small =
      shape.kernel_height <= 8 && shape.top < shape.kernel_height && shape.left < shape.kernel_width;
  if (!plain_steps || !small || !fits_blocks(request, problem.src) || !fits_blocks(request, problem.dst))
    return std::nullopt;
  Selection selection = request.plain_selection();
  for (const ConvTensor* tensor : {&problem.src, &problem.dst}) {
    (tensor->output ? selection.outputs : selection.inputs)[tensor->index] =
        make_layout(blocked_images(tensor->plain.get_dims()), tensor->plain);
  }
  switch (problem.direction) {
    case ConvProblem::Direction::forward:
      selection.kernel = native::make_grouped_conv(shape, problem.relu);
      break;
    case ConvProblem::Direction::backward_data:
      selection.kernel = native::make_grouped_backward_data(shape);
      break;
    case ConvProblem::Direction::backward_weights:
      selection.kernel = native::make_grouped_backward_weights(shape, problem.bias.has_value());
  }
  return selection;
}

}  // namespace penstock::kernels::cpu
