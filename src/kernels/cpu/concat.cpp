#include <algorithm>

#include "kernels/cpu/channel_layout.h"
#include "kernels/native/copy_kernels.h"

namespace penstock::kernels::cpu {
namespace {

/// The channel block in which a join of the parts along the channels is a mere sequence of whole blocks; 1 if
/// none. Channels-last of eight channels looks like a block of eight, but a wider whole in that layout is
/// none.
std::int64_t shared_block(const ir::Layout& given, const ir::Shape& whole,
                          std::span<const ir::Shape* const> parts) {
  const auto view = view_of(whole, given);
  if (given.is_plain() || !view || (view->block != 8 && view->block != 16)) return 1;
  if (descriptor_of(given).memory.get_inner_blks().empty()) return 1;
  const bool fits = std::all_of(parts.begin(), parts.end(),
                                [&](const ir::Shape* part) { return (*part)[1] % view->block == 0; });
  return fits ? view->block : 1;
}

/// Along the batch: samples lie one behind the other in every layout that can be walked.
Selection select_concat_of_samples(const Request& request) {
  Selection selection = request.plain_selection();
  for (std::size_t i = 0; i < request.op.inputs.size() && selection.outputs[0].is_plain(); ++i) {
    const ir::Layout given = request.given_or_plain(i);
    if (view_of(request.input(i).shape, given))
      selection.outputs[0] = layout_like(request.output_dims(0), given);
  }
  std::vector<std::int64_t> pieces;
  for (std::size_t i = 0; i < request.op.inputs.size(); ++i) {
    selection.inputs[i] = layout_like(request.input_dims(i), selection.outputs[0]);
    pieces.push_back(floats_of(request.input(i), selection.inputs[i]));
  }
  selection.kernel = native::make_concat(1, pieces);
  return selection;
}

}  // namespace

/// concat and split: copies of whole pieces, in blocks of channels where the boundaries allow, otherwise
/// plain.
Selection select_concat(const Request& request) {
  const bool joins = request.op.kind == ir::OpKind::concat;
  const auto axis = static_cast<std::size_t>(request.op.attrs_as<ir::AxisAttrs>().axis);
  if (joins && axis == 0) return select_concat_of_samples(request);
  const auto& part_ids = joins ? request.op.inputs : request.op.outputs;
  const ir::Shape& whole = joins ? request.output(0).shape : request.input(0).shape;
  std::vector<const ir::Shape*> parts;
  for (const ir::TensorId id : part_ids) parts.push_back(&request.graph.tensor(id).shape);

  std::int64_t block = 1;
  ir::Layout like;
  // Along the rows of images a block is passed over whole, whatever it is.
  for (std::size_t i = 0; axis > 0 && i < request.op.inputs.size() && block == 1; ++i) {
    like = request.given_or_plain(i);
    block = shared_block(like, request.input(i).shape, parts);
  }
  Selection selection = request.plain_selection();
  if (block > 1) {
    for (std::size_t i = 0; i < selection.inputs.size(); ++i)
      selection.inputs[i] = layout_like(request.input_dims(i), like);
    for (std::size_t i = 0; i < selection.outputs.size(); ++i)
      selection.outputs[i] = layout_like(request.output_dims(i), like);
  }
  const std::int64_t within = axis > 1 ? block : 1;
  std::vector<std::int64_t> pieces;
  for (const ir::Shape* part : parts) pieces.push_back(part->elements(axis, part->rank()) * within);
  const std::int64_t outer = whole.elements(0, axis) / within;
  selection.kernel = joins ? native::make_concat(outer, pieces) : native::make_split(outer, pieces);
  return selection;
}

/// pad and crop: in blocks of channels where the channels stay as they are, otherwise plain.
Selection select_pad(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::PadAttrs>();
  const bool pads = request.op.kind == ir::OpKind::pad;
  const ir::Shape& outer = pads ? request.output(0).shape : request.input(0).shape;
  const ir::Shape& inner = pads ? request.input(0).shape : request.output(0).shape;
  native::Box box{outer.dims(), inner.dims(), attrs.begin};
  Selection selection = request.plain_selection();
  const auto view = view_of(request.input(0).shape, request.given_or_plain(0));
  const bool blocked = view && view->block > 1 && outer[1] == inner[1] && outer[1] % view->block == 0;
  if (blocked) {
    selection.inputs[0] = *request.given[0];
    selection.outputs[0] = layout_like(request.output_dims(0), *request.given[0]);
    for (auto* extents : {&box.outer, &box.inner}) {
      (*extents)[1] /= view->block;
      extents->push_back(view->block);
    }
    box.begin.push_back(0);
  }
  selection.kernel = pads ? native::make_pad(box, attrs.value) : native::make_crop(box);
  return selection;
}

}  // namespace penstock::kernels::cpu
