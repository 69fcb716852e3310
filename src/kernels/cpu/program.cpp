#include <algorithm>

#include "kernels/cpu/channel_layout.h"
#include "kernels/native/program_kernel.h"

/// Programs for each element and reductions, in blocks of channels where their inputs have them.
namespace penstock::kernels::cpu {
namespace {

using Extents = std::vector<std::int64_t>;

/// The block of channels in which a tensor lies, without padding; 0 if it is plain or cannot be walked.
std::int64_t channel_block(const ir::Shape& shape, const ir::Layout& layout) {
  if (layout.is_plain()) return 0;
  const auto view = view_of(shape, layout);
  return view && view->block > 1 && shape[1] % view->block == 0 ? view->block : 0;
}

/// `values`, one per axis, as dimensions in the order of memory: [N, C / block, ..., block], or as they are.
/// `inner` and `outer` say what becomes of the channels' value.
template <typename Inner, typename Outer>
Extents in_memory_order(Extents values, std::int64_t block, const Inner& inner, const Outer& outer) {
  if (block == 0) return values;
  values.push_back(inner(values[1]));
  values[1] = outer(values[1]);
  return values;
}

Extents memory_extents(const ir::Shape& shape, std::int64_t block) {
  return in_memory_order(
      shape.dims(), block, [&](std::int64_t) { return block; }, [&](std::int64_t c) { return c / block; });
}

Extents memory_strides(const Extents& strides, std::int64_t block) {
  return in_memory_order(
      strides, block, [](std::int64_t c) { return c; }, [&](std::int64_t c) { return c * block; });
}

/// Strides of a plain tensor of shape `x` along the axes of `y`, to which it broadcasts.
Extents broadcast_strides(const ir::Shape& x, const ir::Shape& y) {
  Extents strides(y.rank(), 0);
  const std::size_t offset = y.rank() - x.rank();
  std::int64_t stride = 1;
  for (std::size_t i = x.rank(); i-- > 0;) {
    strides[offset + i] = x[i] == 1 ? 0 : stride;
    stride *= x[i];
  }
  return strides;
}

/// How a plain input is walked beside outputs of shape `y` in blocks of `block` channels.
native::ProgramInput walk(const ir::Tensor& x, const ir::Shape& y, std::int64_t block) {
  native::ProgramInput input;
  input.dtype = x.dtype;
  const Extents extents = memory_extents(y, block);
  const Extents strides = memory_strides(broadcast_strides(x.shape, y), block);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    const int last = input.dims - 1;
    if (last >= 0 && input.strides[last] == strides[i] * extents[i]) {
      input.extents[last] *= extents[i];
      input.strides[last] = strides[i];
    } else {
      input.extents[input.dims] = extents[i];
      input.strides[input.dims] = strides[i];
      ++input.dims;
    }
  }
  if (input.dims == 0) input.extents[input.dims++] = 1;
  input.whole = input.dims == 1 && input.strides[0] == 1;
  return input;
}

}  // namespace

Selection select_program(const Request& request) {
  const ir::Shape& y = request.output(0).shape;
  const auto is_float = [&](ir::TensorId id) { return request.graph.tensor(id).dtype == ir::DType::f32; };
  const bool floats = std::all_of(request.op.outputs.begin(), request.op.outputs.end(), is_float);
  ir::Layout layout;
  std::int64_t block = 0;
  for (std::size_t i = 0; floats && block == 0 && i < request.op.inputs.size(); ++i) {
    if (!is_float(request.op.inputs[i]) || request.input(i).shape != y) continue;
    block = channel_block(y, request.given_or_plain(i));
    if (block > 0) layout = request.given_or_plain(i);
  }
  Selection selection = request.plain_selection();
  std::vector<native::ProgramInput> inputs;
  for (std::size_t i = 0; i < request.op.inputs.size(); ++i) {
    const bool blocked = block > 0 && is_float(request.op.inputs[i]) && request.input(i).shape == y;
    if (blocked) selection.inputs[i] = layout;
    inputs.push_back(blocked ? native::ProgramInput{} : walk(request.input(i), y, block));
  }
  std::vector<ir::DType> types;
  for (std::size_t i = 0; i < request.op.outputs.size(); ++i) {
    selection.outputs[i] = layout;
    types.push_back(request.output(i).dtype);
  }
  selection.kernel = native::make_program(request.op.attrs_as<ir::PointwiseAttrs>().program,
                                          std::move(inputs), types, y.elements());
  return selection;
}

Selection select_reduce(const Request& request) {
  constexpr std::int64_t kFewOutputs = 64;
  constexpr std::int64_t kManyElements = 65536;
  const auto& attrs = request.op.attrs_as<ir::ReduceAttrs>();
  const ir::Shape& x = request.input(0).shape;
  const std::int64_t block = channel_block(x, request.given_or_plain(0));
  ir::Shape y = x;
  for (const std::int64_t axis : attrs.axes) y.set(static_cast<std::size_t>(axis), 1);
  Extents kept(x.rank(), 1);
  for (const std::int64_t axis : attrs.axes) kept[static_cast<std::size_t>(axis)] = 0;
  const Extents extents = memory_extents(x, block);
  const Extents strides = memory_strides(broadcast_strides(y, x), block);
  const Extents keeps = in_memory_order(
      kept, block, [](std::int64_t k) { return k; }, [](std::int64_t k) { return k; });

  native::ReduceRun run;
  run.function = attrs.function;
  run.outputs = y.elements();
  run.each = x.elements() / run.outputs;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    const bool keep = keeps[i] != 0;
    const int last = run.dims - 1;
    if (last >= 0 && run.kept[last] == keep && (!keep || run.out_strides[last] == strides[i] * extents[i])) {
      run.extents[last] *= extents[i];
      run.out_strides[last] = strides[i];
    } else {
      run.extents[run.dims] = extents[i];
      run.kept[run.dims] = keep;
      run.out_strides[run.dims] = strides[i];
      ++run.dims;
    }
  }
  if (run.dims == 0) run.extents[run.dims++] = 1;
  if (run.outputs < kFewOutputs && x.elements() > kManyElements) {
    for (int d = run.dims; d-- > 0;) {
      if (!run.kept[d]) run.parts = std::min(run.extents[d], kFewOutputs);
    }
  }
  Selection selection = request.plain_selection();
  if (block > 0) selection.inputs[0] = request.given_or_plain(0);
  selection.kernel = native::make_reduce(run);
  return selection;
}

}  // namespace penstock::kernels::cpu
