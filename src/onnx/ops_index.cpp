#include <algorithm>
#include <limits>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// Starts, ends, axes and steps are attributes before opset 10 and inputs from it on.
void slice(Importer& at) {
  const Extents dims = at.shape(0);
  const bool in_attributes = at.node().find("starts") != nullptr;
  const auto numbers = [&](const char* name, std::size_t input) {
    if (in_attributes) return at.integers(name);
    return at.has(input) ? at.integers(input) : std::vector<std::int64_t>{};
  };
  const std::vector<std::int64_t> starts = numbers("starts", 1), ends = numbers("ends", 2);
  std::vector<std::int64_t> axes = numbers("axes", 3), steps = numbers("steps", 4);
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    at.fail("has unlike numbers of starts, ends, axes and steps");
  const ElementType type = at.type(0);
  Value y = at.value(0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = at.axis(axes[i], dims.size());
    const std::int64_t extent = dims[axis];
    if (steps[i] == 0) at.fail("has a step of 0");
    const std::int64_t step = std::clamp(steps[i], -extent - 1, extent + 1);
    const auto place = [&](std::int64_t given, std::int64_t low, std::int64_t high) {
      return std::clamp(given < 0 ? given + extent : given, low, high);
    };
    const std::int64_t first = step > 0 ? place(starts[i], 0, extent) : place(starts[i], 0, extent - 1);
    const std::int64_t last = step > 0 ? place(ends[i], 0, extent) : place(ends[i], -1, extent - 1);
    const std::int64_t span = step > 0 ? last - first : first - last;
    const std::int64_t size = step > 0 ? step : -step;
    const std::int64_t count = (span + size - 1) / size;
    if (span < 1) at.fail("would give an empty tensor, which is not supported");
    if (first == 0 && step == 1 && count == extent) continue;
    y = at.net().slice(y, static_cast<std::int64_t>(axis), first, count, count == 1 ? 1 : step);
  }
  at.set(0, y, at.net().shape(y), type);
}

/// Rows of a table by tokens are an embedding.
void gather(Importer& at) {
  const Extents x = at.shape(0), indices = at.shape(1);
  const std::size_t axis = at.axis(at.integer("axis", 0), x.size());
  Extents dims(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  const ElementType type = at.type(0);
  if (const Constant* known = at.known(1)) {
    std::vector<std::int64_t> places;
    for (const std::int64_t given : known->integers) {
      const std::int64_t place = given < 0 ? given + x[axis] : given;
      if (place < 0 || place >= x[axis]) at.fail("takes an element beyond its input");
      places.push_back(place);
    }
    return at.set(0, picked(at, at.value(0), axis, places), dims, type);
  }
  if (at.is_initializer(0) && is_floating(type) && x.size() == 2 && axis == 0 && indices.size() > 1)
    return at.set(0, at.net().embedding(at.value(1), at.value(0), {}, at.layer()), dims, type);
  const Value y = at.net().gather(at.value(0), at.value(1), static_cast<std::int64_t>(axis), at.layer());
  at.set(0, y, dims, type);
}

/// Negative indices count from the end.
Value counted(Importer& at, Value indices, std::int64_t extent) {
  const Value wrapped = apply(at, "add_scalar", {indices}, {static_cast<float>(extent)});
  const Value negative = apply(at, "clip", {apply(at, "neg", {indices})}, {0, 1});
  return apply(at, "where", {negative, wrapped, indices});
}

/// What stands at each of some places along an axis: the sum over the axis of x where the place is meant.
/// Gradients of elements that are taken often add up in one order, whatever the number of threads.
void gather_elements(Importer& at) {
  const Extents x = at.shape(0), dims = at.shape(1);
  if (x.size() != dims.size()) at.fail("has indices of another rank than its input");
  const std::size_t axis = at.axis(at.integer("axis", 0), x.size());
  const ElementType type = at.type(0);
  Value data = at.real_value(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == axis || x[i] == dims[i]) continue;
    if (dims[i] > x[i]) at.fail("has more indices than its input has elements");
    data = at.net().slice(data, static_cast<std::int64_t>(i), 0, dims[i]);
  }
  // x [..., 1, E, ...] beside indices [..., I, 1, ...].
  Extents spread = dims, places = dims;
  spread[axis] = 1;
  spread.insert(spread.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x[axis]);
  places.insert(places.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  if (spread.size() > 6) at.fail("has too many axes");
  const Value index = at.net().reshape(counted(at, at.value(1), x[axis]), places);
  const Value meant = one_hot(at, index, axis + 1, x[axis]);
  const Value parts = apply(at, "where", {meant, at.net().reshape(data, spread), at.table({1}, {0})});
  const auto along = static_cast<std::int64_t>(axis) + 1;
  at.set(0, at.net().reduce(Reduction::sum, parts, {along}, false, at.layer()), dims, type);
}

/// Ones and zeros, or two other values, along a new axis.
void one_hot_node(Importer& at) {
  const Extents indices = at.shape(0);
  const auto depth = static_cast<std::int64_t>(at.number(1));
  if (depth < 1 || depth > 1 << 24) at.fail("has a depth that is not positive or too large");
  const std::size_t axis = at.axis(at.integer("axis", -1), indices.size() + 1);
  Extents dims = indices, places = indices;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  places.insert(places.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  const Value index = at.net().reshape(counted(at, at.value(0), depth), places);
  const Value meant = one_hot(at, index, axis, depth);
  const Value values = at.real_value(2);
  const ElementType type = at.type(2);
  const Value off = at.net().slice(values, 0, 0, 1), on = at.net().slice(values, 0, 1, 1);
  at.set(0, at.net().apply("where", {meant, on, off}, {}, at.layer()), dims, type);
}

/// The upper or lower triangle of matrices.
void triangle(Importer& at) {
  const Extents dims = at.shape(0);
  if (dims.size() < 2) at.fail("needs matrices");
  const std::int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const auto offset = at.has(1) ? static_cast<std::int64_t>(at.number(1)) : 0;
  const bool upper = at.integer("upper", 1) != 0;
  if (rows > (1 << 24) / columns) at.fail("is too large");
  std::vector<double> mask;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      mask.push_back((upper ? c - r >= offset : c - r <= offset) ? 1 : 0);
  }
  const ElementType type = at.type(0);
  const Value y = at.net().apply("where", {at.table({rows, columns}, mask), at.value(0), at.table({1}, {0})},
                                 {}, at.layer());
  at.set(0, y, dims, type);
}

void eye_like(Importer& at) {
  const Extents dims = at.shape(0);
  if (dims.size() != 2 || dims[0] > (1 << 20) / dims[1]) at.fail("needs a matrix that is not too large");
  const std::int64_t offset = at.integer("k", 0);
  const auto type = static_cast<ElementType>(at.integer("dtype", static_cast<int>(at.type(0))));
  Constant eye{type, dims, {}, {}};
  for (std::int64_t r = 0; r < dims[0]; ++r) {
    for (std::int64_t c = 0; c < dims[1]; ++c) {
      if (eye.floating()) eye.floats.push_back(c - r == offset ? 1 : 0);
      if (!eye.floating()) eye.integers.push_back(c - r == offset ? 1 : 0);
    }
  }
  at.set_constant(0, std::move(eye));
}

}  // namespace

const OpTable& index_ops() {
  static const OpTable table{
      {"Slice", slice},         {"Gather", gather},  {"GatherElements", gather_elements},
      {"OneHot", one_hot_node}, {"Trilu", triangle}, {"EyeLike", eye_like}};
  return table;
}

}  // namespace penstock::onnx
