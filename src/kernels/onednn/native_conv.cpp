#include <algorithm>

#include "kernels/native/conv_kernels.h"
#include "kernels/onednn/channel_layout.h"
#include "kernels/onednn/conv_problem.h"

namespace penstock::kernels::onednn {
namespace {

/// [O, C, k...] as [O/8, C/8, k..., 8 in, 8 out]: also what the library likes best for AVX2.
MemoryDesc blocked_weights(const Dims& dims) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = dims.size() == 3 ? Tag::ABc8b8a : dims.size() == 4 ? Tag::ABcd8b8a : Tag::ABcde8b8a;
  return {dims, dnnl::memory::data_type::f32, tag};
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

}  // namespace

std::optional<Selection> select_native_conv(const Request& request) {
  if (request.op.kind != ir::OpKind::conv_backward_weights || !native::has_conv_kernels())
    return std::nullopt;
  if (request.op.attrs_as<ir::ConvAttrs>().groups != 1) return std::nullopt;
  Selection selection = request.plain_selection();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto view = view_of(request.input(i).shape, request.given_or_plain(i));
    if (!view || view->block != 8 || view->channels % 8 != 0 || request.given[i] == nullptr)
      return std::nullopt;
    selection.inputs[i] = *request.given[i];
  }
  const ConvProblem problem(request);
  selection.outputs[0] = make_layout(blocked_weights(request.output_dims(0)), problem.weights.plain);
  selection.kernel = native::make_conv_backward_weights(shape_of(problem), request.op.outputs.size() > 1);
  return selection;
}

}  // namespace penstock::kernels::onednn
