#include <algorithm>
#include <cstdlib>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

void identity(Importer& at) {
  const Extents dims = at.shape(0);
  at.set(0, at.value(0), dims, at.type(0));
}

void constant(Importer& at) {
  const Node& node = at.node();
  if (const Attribute* value = node.find("value"); value != nullptr && value->tensor != nullptr) {
    at.set_constant(0, at.read(*value->tensor));
  } else if (const Attribute* one = node.find("value_float")) {
    at.set_constant(0, {ElementType::f32, {}, {}, {one->f}});
  } else if (const Attribute* integer = node.find("value_int")) {
    at.set_constant(0, {ElementType::s64, {}, {integer->i}, {}});
  } else if (const Attribute* floats = node.find("value_floats")) {
    at.set_constant(0, {ElementType::f32,
                        {static_cast<std::int64_t>(floats->floats.size())},
                        {},
                        {floats->floats.begin(), floats->floats.end()}});
  } else if (const Attribute* integers = node.find("value_ints")) {
    at.set_constant(
        0, {ElementType::s64, {static_cast<std::int64_t>(integers->ints.size())}, integers->ints, {}});
  } else {
    at.fail("has no value that is supported");
  }
}

/// A value of the input's elements in another shape.
void reshape_to(Importer& at, const Extents& shape) {
  const ElementType type = at.type(0);
  const Extents held = shape.empty() ? Extents{1} : shape;
  const Value y = at.net().reshape(at.value(0), held, at.layer());
  at.set(0, y, shape.empty() ? shape : at.net().shape(y), type);
}

void reshape(Importer& at) {
  Extents shape = at.integers(std::size_t{1});
  const Extents& x = at.shape(0);
  const bool keeps_zeros = at.integer("allowzero", 0) != 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 0 || keeps_zeros) continue;
    if (i >= x.size()) at.fail("copies an extent that its input does not have");
    shape[i] = x[i];
  }
  // A file that was written for another batch has it in its shapes.
  if (!shape.empty() && !x.empty() && at.batch() != at.file_batch() && shape[0] == at.file_batch() &&
      x[0] == at.batch()) {
    shape[0] = at.batch();
  }
  reshape_to(at, shape);
}

void flatten(Importer& at) {
  const Extents& x = at.shape(0);
  const std::int64_t given = at.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(x.size());
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) at.fail("has an axis that its input does not have");
  std::int64_t outer = 1, inner = 1;
  for (std::int64_t i = 0; i < rank; ++i) (i < axis ? outer : inner) *= x[static_cast<std::size_t>(i)];
  reshape_to(at, {outer, inner});
}

void squeeze(Importer& at) {
  const Extents& x = at.shape(0);
  const std::vector<std::int64_t> axes = axes_of(at);
  std::vector<bool> gone(x.size(), false);
  for (const std::int64_t axis : axes) gone[at.axis(axis, x.size())] = true;
  Extents shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (axes.empty() ? x[i] != 1 : !gone[i]) shape.push_back(x[i]);
  }
  reshape_to(at, shape);
}

void unsqueeze(Importer& at) {
  const Extents& x = at.shape(0);
  const std::vector<std::int64_t> axes = axes_of(at);
  const std::size_t rank = x.size() + axes.size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : axes) added[at.axis(axis, rank)] = true;
  Extents shape;
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!added[i] && from >= x.size()) at.fail("names an axis twice");
    shape.push_back(added[i] ? 1 : x[from++]);
  }
  reshape_to(at, shape);
}

void transpose(Importer& at) {
  std::vector<std::int64_t> order = at.integers("perm");
  if (order.empty()) {
    for (std::size_t i = at.shape(0).size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  }
  if (order.empty()) return identity(at);
  const ElementType type = at.type(0);
  const Value y = at.net().transpose(at.real_value(0), order, at.layer());
  at.set(0, y, at.net().shape(y), type);
}

void concat(Importer& at) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < at.node().inputs.size(); ++i) values.push_back(at.real_value(i));
  const std::size_t axis = at.axis(at.integer("axis", 1), at.shape(0).size());
  const ElementType type = at.type(0);
  const Value y = at.net().concat(values, static_cast<std::int64_t>(axis), at.layer());
  at.set(0, y, at.net().shape(y), type);
}

void split(Importer& at) {
  const Extents& x = at.shape(0);
  const std::size_t axis = at.axis(at.integer("axis", 0), x.size());
  std::vector<std::int64_t> sizes = at.integers("split");
  if (sizes.empty() && at.has(1)) sizes = at.integers(std::size_t{1});
  if (sizes.empty()) {
    const auto count = static_cast<std::int64_t>(at.node().outputs.size());
    if (count == 0) at.fail("makes nothing");
    const std::int64_t each = (x[axis] + count - 1) / count;
    for (std::int64_t rest = x[axis]; rest > 0; rest -= each) sizes.push_back(std::min(each, rest));
  }
  if (sizes.size() != at.node().outputs.size()) at.fail("has another number of outputs than of sizes");
  const ElementType type = at.type(0);
  const std::vector<Value> parts =
      at.net().split(at.real_value(0), sizes, static_cast<std::int64_t>(axis), at.layer());
  for (std::size_t i = 0; i < parts.size(); ++i) at.set(i, parts[i], at.net().shape(parts[i]), type);
}

/// How many elements of each axis of a pad node are added; negative: taken away.
struct Pads {
  Extents begin, end;
};

Pads pads_of(Importer& at) {
  const std::size_t rank = at.shape(0).size();
  std::vector<std::int64_t> pads = at.integers("pads");
  if (pads.empty()) pads = at.integers(std::size_t{1});
  std::vector<std::int64_t> axes;
  if (at.has(3)) axes = at.integers(std::size_t{3});
  if (axes.empty()) {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) at.fail("has another number of pads than twice its axes");
  Pads result{Extents(rank, 0), Extents(rank, 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result.begin[at.axis(axes[i], rank)] = pads[i];
    result.end[at.axis(axes[i], rank)] = pads[i + axes.size()];
  }
  return result;
}

/// The element of an axis that stands at place i outside of it.
std::int64_t mirrored(Importer& at, const std::string& mode, std::int64_t i, std::int64_t extent) {
  if (mode == "edge") return std::clamp<std::int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return ((i % extent) + extent) % extent;
  if (mode != "reflect") at.fail("pads by mode " + mode + ", which is not supported");
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t at_place = ((i % period) + period) % period;
  return at_place < extent ? at_place : period - at_place;
}

void pad(Importer& at) {
  const Extents dims = at.shape(0);
  const std::string mode = at.text("mode", "constant");
  const Pads pads = pads_of(at);
  const ElementType type = at.type(0);
  Value y = at.real_value(0);
  constexpr std::int64_t kLargest = 1 << 24;
  if (mode != "constant") {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (std::max(std::abs(pads.begin[i]), std::abs(pads.end[i])) > kLargest) at.fail("pads too much");
      std::vector<std::int64_t> places;
      for (std::int64_t k = -pads.begin[i]; k < dims[i] + pads.end[i]; ++k)
        places.push_back(mirrored(at, mode, k, dims[i]));
      y = picked(at, y, i, places);
    }
    return at.set(0, y, at.net().shape(y), type);
  }
  const float value = at.has(2) ? static_cast<float>(at.number(2)) : at.real("value", 0);
  Extents crop_begin(dims.size(), 0), crop_end = crop_begin, begin = crop_begin, end = crop_begin;
  bool crops = false, adds = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    begin[i] = std::max<std::int64_t>(0, pads.begin[i]);
    end[i] = std::max<std::int64_t>(0, pads.end[i]);
    crop_begin[i] = begin[i] - pads.begin[i];
    crop_end[i] = end[i] - pads.end[i];
    crops |= crop_begin[i] + crop_end[i] > 0;
    adds |= begin[i] + end[i] > 0;
  }
  if (crops) y = at.net().crop(y, crop_begin, crop_end);
  if (adds) y = at.net().pad(y, begin, end, value, at.layer());
  at.set(0, y, at.net().shape(y), type);
}

void expand(Importer& at) {
  const Extents dims = broadcast_dims(at, at.shape(0), at.integers(std::size_t{1}));
  const ElementType type = at.type(0);
  Value x = at.value(0);
  if (!dims.empty() && dims != at.net().shape(x)) x = at.net().expand(x, dims, at.layer());
  at.set(0, x, dims, type);
}

/// Each axis so many times, one behind the other.
void tile(Importer& at) {
  const Extents dims = at.shape(0);
  const std::vector<std::int64_t> repeats = at.integers(std::size_t{1});
  if (repeats.size() != dims.size()) at.fail("has another number of repeats than axes");
  const ElementType type = at.type(0);
  Value x = at.value(0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] < 1 || repeats[i] > 1'000'000) at.fail("repeats an axis less than once or too often");
    if (repeats[i] == 1) continue;
    const Extents now = at.net().shape(x);
    const std::int64_t outer = product_of(now, 0, i), inner = product_of(now, i, now.size());
    Extents made = now;
    made[i] *= repeats[i];
    const Value row = at.net().reshape(x, {outer, 1, inner});
    x = at.net().reshape(at.net().expand(row, {outer, repeats[i], inner}), made);
  }
  at.set(0, x, at.net().shape(x), type);
}

/// Between channels and a square of pixels: reshape, another order of axes, reshape.
void depth_to_space(Importer& at) {
  const Extents x = at.shape(0);
  const std::int64_t block = at.integer("blocksize", 0);
  if (x.size() != 4 || block < 1) at.fail("needs an input [N, C, H, W] and a block size");
  const ElementType type = at.type(0);
  if (at.node().op_type == "SpaceToDepth") {
    if (x[2] % block != 0 || x[3] % block != 0) at.fail("has a block size that does not divide the image");
    const Extents split{x[0], x[1], x[2] / block, block, x[3] / block, block};
    const bool by_column = at.text("mode", "DCR") == "CRD";
    const Extents order = by_column ? Extents{0, 1, 3, 5, 2, 4} : Extents{0, 3, 5, 1, 2, 4};
    const Value y = at.net().transpose(at.net().reshape(at.real_value(0), split), order);
    return at.set(0, y, {x[0], x[1] * block * block, x[2] / block, x[3] / block}, type);
  }
  if (x[1] % (block * block) != 0) at.fail("has a block size that does not divide the channels");
  const std::int64_t channels = x[1] / (block * block);
  const bool by_column = at.text("mode", "DCR") == "CRD";
  const Extents split = by_column ? Extents{x[0], channels, block, block, x[2], x[3]}
                                  : Extents{x[0], block, block, channels, x[2], x[3]};
  const Extents order = by_column ? Extents{0, 1, 4, 2, 5, 3} : Extents{0, 3, 4, 1, 5, 2};
  const Value y = at.net().transpose(at.net().reshape(at.real_value(0), split), order);
  at.set(0, y, {x[0], channels, x[2] * block, x[3] * block}, type);
}

/// Cropped or padded around the middle of each axis.
void center_crop_pad(Importer& at) {
  const Extents dims = at.shape(0);
  const std::vector<std::int64_t> target = at.integers(std::size_t{1});
  std::vector<std::int64_t> axes = at.integers("axes");
  if (axes.empty()) {
    for (std::size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.size() != target.size()) at.fail("has another number of extents than axes");
  const ElementType type = at.type(0);
  Value y = at.real_value(0);
  Extents begin(dims.size(), 0), end(dims.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = at.axis(axes[i], dims.size());
    const std::int64_t more = target[i] - dims[axis];
    if (target[i] < 1) at.fail("would give an empty tensor, which is not supported");
    if (more < 0) y = at.net().slice(y, static_cast<std::int64_t>(axis), -more / 2, target[i]);
    begin[axis] = std::max<std::int64_t>(0, more) / 2;
    end[axis] = std::max<std::int64_t>(0, more) - begin[axis];
  }
  y = at.net().pad(y, begin, end, 0, at.layer());
  at.set(0, y, at.net().shape(y), type);
}

}  // namespace

const OpTable& shape_ops() {
  static const OpTable table{{"Identity", identity},
                             {"Constant", constant},
                             {"Reshape", reshape},
                             {"Flatten", flatten},
                             {"Squeeze", squeeze},
                             {"Unsqueeze", unsqueeze},
                             {"Transpose", transpose},
                             {"Concat", concat},
                             {"Split", split},
                             {"Pad", pad},
                             {"Expand", expand},
                             {"Tile", tile},
                             {"DepthToSpace", depth_to_space},
                             {"SpaceToDepth", depth_to_space},
                             {"CenterCropPad", center_crop_pad}};
  return table;
}

}  // namespace penstock::onnx
