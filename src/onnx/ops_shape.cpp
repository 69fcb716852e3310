#include <algorithm>
#include <limits>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

void identity(Importer& at) {
  at.set(0, at.value(0));
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
  at.set(0, at.net().reshape(at.value(0), shape, at.layer()));
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
  if (shape.empty()) shape = {1};
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

std::vector<std::int64_t> axes_of(Importer& at) {
  if (at.node().find("axes") != nullptr) return at.integers("axes");
  return at.has(1) ? at.integers(std::size_t{1}) : std::vector<std::int64_t>{};
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
  if (shape.empty()) shape = {1};
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
  at.set(0, at.net().transpose(at.value(0), order, at.layer()));
}

void concat(Importer& at) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < at.node().inputs.size(); ++i) values.push_back(at.value(i));
  const std::size_t axis = at.axis(at.integer("axis", 1), at.shape(0).size());
  at.set(0, at.net().concat(values, static_cast<std::int64_t>(axis), at.layer()));
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
  const std::vector<Value> parts =
      at.net().split(at.value(0), sizes, static_cast<std::int64_t>(axis), at.layer());
  for (std::size_t i = 0; i < parts.size(); ++i) at.set(i, parts[i]);
}

void pad(Importer& at) {
  const std::string mode = at.text("mode", "constant");
  if (mode != "constant") at.fail("pads by mode " + mode + ", which is not supported");
  const std::size_t rank = at.shape(0).size();
  std::vector<std::int64_t> pads = at.integers("pads");
  if (pads.empty()) pads = at.integers(std::size_t{1});
  const float value = at.has(2) ? static_cast<float>(at.number(2)) : at.real("value", 0);
  Extents begin(rank, 0), end(rank, 0);
  std::vector<std::int64_t> axes;
  if (at.has(3)) axes = at.integers(std::size_t{3});
  if (axes.empty()) {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) at.fail("has another number of pads than twice its axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    begin[at.axis(axes[i], rank)] = pads[i];
    end[at.axis(axes[i], rank)] = pads[i + axes.size()];
  }
  const auto all = [&](const auto& test) {
    return std::all_of(begin.begin(), begin.end(), test) && std::all_of(end.begin(), end.end(), test);
  };
  if (all([](std::int64_t p) { return p == 0; })) return at.set(0, at.value(0));
  if (all([](std::int64_t p) { return p <= 0; })) {
    for (Extents* side : {&begin, &end}) {
      for (std::int64_t& p : *side) p = -p;
    }
    return at.set(0, at.net().crop(at.value(0), begin, end, at.layer()));
  }
  if (!all([](std::int64_t p) { return p >= 0; })) at.fail("pads and crops at once, which is not supported");
  at.set(0, at.net().pad(at.value(0), begin, end, value, at.layer()));
}

void slice(Importer& at) {
  const Extents& x = at.shape(0);
  const bool in_attributes = at.node().find("starts") != nullptr;
  const std::vector<std::int64_t> starts =
      in_attributes ? at.integers("starts") : at.integers(std::size_t{1});
  const std::vector<std::int64_t> ends = in_attributes ? at.integers("ends") : at.integers(std::size_t{2});
  std::vector<std::int64_t> axes = at.integers("axes");
  if (axes.empty() && !in_attributes && at.has(3)) axes = at.integers(std::size_t{3});
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size())
    at.fail("has unlike numbers of starts, ends and axes");
  if (!in_attributes && at.has(4)) {
    for (const std::int64_t step : at.integers(std::size_t{4})) {
      if (step != 1) at.fail("has steps that are not 1, which is not supported");
    }
  }
  Extents begin(x.size(), 0), end(x.size(), 0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = at.axis(axes[i], x.size());
    const auto place = [&](std::int64_t given) {
      return std::clamp<std::int64_t>(given < 0 ? given + x[axis] : given, 0, x[axis]);
    };
    begin[axis] = place(starts[i]);
    end[axis] = x[axis] - place(ends[i]);
  }
  at.set(0, at.net().crop(at.value(0), begin, end, at.layer()));
}

/// Rows of a table by indices: an embedding.
void gather(Importer& at) {
  const std::size_t rank = at.shape(0).size();
  const std::size_t axis = at.axis(at.integer("axis", 0), rank);
  const Constant* index = at.known(1);
  if (index != nullptr && index->size() == 1 && index->dims.size() <= 1) {
    const Extents x = at.shape(0);
    const std::int64_t given = index->integers.at(0);
    const std::int64_t place = given < 0 ? given + x[axis] : given;
    if (place < 0 || place >= x[axis]) at.fail("takes an element beyond its input");
    Extents begin(rank, 0), end(rank, 0);
    begin[axis] = place;
    end[axis] = x[axis] - place - 1;
    const std::string layer = at.layer();
    const Value part = at.net().crop(at.value(0), begin, end, layer);
    if (!index->dims.empty()) return at.set(0, part);
    Extents shape = x;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    if (shape.empty()) shape = {1};
    return at.set(0, at.net().reshape(part, shape, layer + ".squeezed"));
  }
  if (rank != 2 || axis != 0)
    at.fail("gathers other than rows of a matrix or one element, which is not supported");
  at.set(0, at.net().embedding(at.value(1), at.value(0), {}, at.layer()));
}

/// Between floating types nothing happens: all are f32 here.
void cast(Importer& at) {
  const auto to = static_cast<ElementType>(at.integer("to", 0));
  const Value x = at.value(0);
  const bool same =
      at.net().dtype(x) == DType::f32 ? is_floating(to) : to == ElementType::s32 || to == ElementType::s64;
  if (!same) at.fail("casts between integers and floats, which is not supported");
  at.set(0, x);
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
                             {"Slice", slice},
                             {"Gather", gather},
                             {"Cast", cast}};
  return table;
}

}  // namespace penstock::onnx
