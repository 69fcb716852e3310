#include "onnx/constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace penstock::onnx {
namespace {

using Inputs = std::vector<const Constant*>;
using Integers = std::vector<std::int64_t>;

struct Fold {
  const Model& model;
  const Node& node;
  const Inputs& in;

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}: {} {}", model.path, node_text(node), what));
  }
  bool has(std::size_t i) const { return i < in.size() && in[i] != nullptr; }
  const Constant& input(std::size_t i) const {
    if (!has(i)) fail(fmt::format("has no input {}", i));
    return *in[i];
  }
  const Integers& integers(std::size_t i) const {
    if (input(i).floating()) fail(fmt::format("has an input {} that is not of integers", i));
    return input(i).integers;
  }
  std::int64_t attribute(const char* name, std::int64_t usual) const {
    const Attribute* found = node.find(name);
    return found == nullptr ? usual : found->i;
  }
  std::size_t axis(std::int64_t given, std::size_t rank) const {
    const std::int64_t positive = given < 0 ? given + static_cast<std::int64_t>(rank) : given;
    if (positive < 0 || positive >= static_cast<std::int64_t>(rank))
      fail(fmt::format("has an axis {} of {}", given, rank));
    return static_cast<std::size_t>(positive);
  }
  /// Axes that are an attribute before some opset and an input from it on.
  Integers axes(std::size_t input_index) const {
    if (const Attribute* found = node.find("axes")) return found->ints;
    return has(input_index) ? integers(input_index) : Integers{};
  }
};

std::int64_t count_of(const Fold& f, const Extents& dims) {
  std::int64_t count = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0) f.fail("would make a tensor with a negative extent");
    if (extent > 0 && count > kMaxListed / extent) f.fail("would make a constant that is too large");
    count *= extent;
  }
  return count;
}

/// Element i of the result is element source(i) of x.
template <typename Source>
Constant picked(const Fold& f, const Constant& x, Extents dims, const Source& source) {
  Constant y{x.type, std::move(dims), {}, {}};
  const std::int64_t count = count_of(f, y.dims);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = source(i);
    if (from < 0 || from >= x.size()) f.fail("reads beyond a constant");
    if (x.floating()) {
      y.floats.push_back(x.floats[static_cast<std::size_t>(from)]);
    } else {
      y.integers.push_back(x.integers[static_cast<std::size_t>(from)]);
    }
  }
  return y;
}

Constant reshaped(const Constant& x, Extents dims) {
  Constant y = x;
  y.dims = std::move(dims);
  return y;
}

Constant squeeze(const Fold& f) {
  const Constant& x = f.input(0);
  std::vector<bool> gone(x.dims.size(), false);
  const Integers axes = f.axes(1);
  for (const std::int64_t given : axes) gone[f.axis(given, x.dims.size())] = true;
  Extents dims;
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    const bool drop = axes.empty() ? x.dims[i] == 1 : gone[i];
    if (drop && x.dims[i] != 1) f.fail("squeezes an axis that is not 1");
    if (!drop) dims.push_back(x.dims[i]);
  }
  return reshaped(x, dims);
}

Constant unsqueeze(const Fold& f) {
  const Constant& x = f.input(0);
  const Integers axes = f.axes(1);
  const std::size_t rank = x.dims.size() + axes.size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t given : axes) added[f.axis(given, rank)] = true;
  Extents dims;
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!added[i] && from >= x.dims.size()) f.fail("names an axis twice");
    dims.push_back(added[i] ? 1 : x.dims[from++]);
  }
  return reshaped(x, dims);
}

Constant gather(const Fold& f) {
  const Constant& x = f.input(0);
  const Integers& indices = f.integers(1);
  if (x.dims.empty()) f.fail("gathers from a scalar");
  const std::size_t axis = f.axis(f.attribute("axis", 0), x.dims.size());
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  Extents dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), f.input(1).dims.begin(), f.input(1).dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
  const auto many = static_cast<std::int64_t>(indices.size());
  return picked(f, x, dims, [&](std::int64_t i) -> std::int64_t {
    const std::int64_t at = i % inner, which = i / inner % many, outer = i / inner / many;
    std::int64_t index = indices[static_cast<std::size_t>(which)];
    if (index < 0) index += x.dims[axis];
    return index < 0 || index >= x.dims[axis] ? -1 : (outer * x.dims[axis] + index) * inner + at;
  });
}

Constant concat(const Fold& f) {
  const std::size_t axis = f.axis(f.attribute("axis", 0), f.input(0).dims.size());
  Constant y{f.input(0).type, f.input(0).dims, {}, {}};
  y.dims[axis] = 0;
  for (std::size_t i = 0; i < f.in.size(); ++i) {
    const Constant& x = f.input(i);
    if (x.dims.size() != y.dims.size() || x.floating() != y.floating()) f.fail("joins unlike constants");
    y.dims[axis] += x.dims[axis];
    y.integers.insert(y.integers.end(), x.integers.begin(), x.integers.end());
    y.floats.insert(y.floats.end(), x.floats.begin(), x.floats.end());
  }
  if (count_of(f, y.dims) != y.size()) f.fail("joins constants of different shapes");
  return y;
}

Constant slice(const Fold& f) {
  const Constant& x = f.input(0);
  const Attribute* starts_attribute = f.node.find("starts");
  const Integers starts = starts_attribute != nullptr ? starts_attribute->ints : f.integers(1);
  const Attribute* ends_attribute = f.node.find("ends");
  const Integers ends = ends_attribute != nullptr ? ends_attribute->ints : f.integers(2);
  Integers axes = f.axes(3);
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const Integers steps = f.has(4) ? f.integers(4) : Integers(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    f.fail("has unlike numbers of starts, ends, axes and steps");
  Extents dims = x.dims, first(x.dims.size(), 0), step(x.dims.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t a = f.axis(axes[i], dims.size());
    const std::int64_t extent = x.dims[a], by = steps[i];
    if (by == 0 || by == std::numeric_limits<std::int64_t>::min()) f.fail("has a step of 0");
    const auto place = [&](std::int64_t given, std::int64_t low, std::int64_t high) {
      return std::clamp(given < 0 ? given + extent : given, low, high);
    };
    first[a] = by > 0 ? place(starts[i], 0, extent) : place(starts[i], 0, extent - 1);
    const std::int64_t last = by > 0 ? place(ends[i], 0, extent) : place(ends[i], -1, extent - 1);
    const std::int64_t span = by > 0 ? last - first[a] : first[a] - last;
    const std::int64_t size = by > 0 ? by : -by;
    dims[a] = std::max<std::int64_t>(0, (span + size - 1) / size);
    step[a] = by;
  }
  return picked(f, x, dims, [&](std::int64_t i) {
    std::int64_t from = 0, stride = 1;
    for (std::size_t a = dims.size(); a-- > 0;) {
      from += (first[a] + i % dims[a] * step[a]) * stride;
      i /= dims[a];
      stride *= x.dims[a];
    }
    return from;
  });
}

Constant cast(const Fold& f) {
  const Constant& x = f.input(0);
  const auto to = static_cast<ElementType>(f.attribute("to", 0));
  if (element_bytes(to) == 0) f.fail("casts to " + type_name(to) + ", which is not supported");
  Constant y{to, x.dims, {}, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    if (y.floating()) {
      y.floats.push_back(x.number(i));
    } else if (to == ElementType::boolean) {
      y.integers.push_back(x.number(i) != 0 ? 1 : 0);
    } else {
      y.integers.push_back(x.floating() ? static_cast<std::int64_t>(std::clamp(x.floats[i], -9e18, 9e18))
                                        : x.integers[i]);
    }
  }
  return y;
}

Constant constant_of_shape(const Fold& f) {
  Constant y{ElementType::f32, f.integers(0), {}, {}};
  double value = 0;
  const Attribute* given = f.node.find("value");
  if (given != nullptr && given->tensor != nullptr) {
    if (given->tensor->elements != 1) f.fail("has a value that is not one number");
    y.type = given->tensor->type;
    if (y.floating()) {
      float one = 0;
      read_floats(f.model, *given->tensor, 0, 1, &one);
      value = one;
    } else {
      value = static_cast<double>(read_integers(f.model, *given->tensor)[0]);
    }
  }
  const auto count = static_cast<std::size_t>(count_of(f, y.dims));
  if (y.floating()) y.floats.assign(count, value);
  if (!y.floating()) y.integers.assign(count, static_cast<std::int64_t>(value));
  return y;
}

Constant range(const Fold& f) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (f.input(i).size() != 1) f.fail("needs numbers");
  }
  const double start = f.input(0).number(0), limit = f.input(1).number(0), delta = f.input(2).number(0);
  if (delta == 0) f.fail("has a step of 0");
  const double steps = std::ceil((limit - start) / delta);
  Constant y{f.input(0).type, {steps > 0 ? static_cast<std::int64_t>(std::min(steps, 1e15)) : 0}, {}, {}};
  const std::int64_t count = count_of(f, y.dims);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = start + static_cast<double>(i) * delta;
    if (y.floating()) y.floats.push_back(value);
    if (!y.floating()) y.integers.push_back(static_cast<std::int64_t>(value));
  }
  return y;
}

Extents broadcast(const Fold& f, const Extents& a, const Extents& b) {
  Extents dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) f.fail("has inputs that do not fit each other");
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

Constant expanded(const Fold& f, const Constant& x, const Extents& dims) {
  return picked(f, x, dims, [&](std::int64_t i) {
    std::int64_t from = 0, stride = 1;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const std::int64_t extent = dims[dims.size() - 1 - k];
      if (k < x.dims.size()) {
        const std::int64_t own = x.dims[x.dims.size() - 1 - k];
        from += (own == 1 ? 0 : i % extent) * stride;
        stride *= own;
      }
      i /= extent;
    }
    return from;
  });
}

std::int64_t wrapped(double value) {
  return static_cast<std::int64_t>(std::clamp(value, -9e18, 9e18));
}

Constant arithmetic(const Fold& f, const std::string& op) {
  const Extents dims = broadcast(f, f.input(0).dims, f.input(1).dims);
  const Constant a = expanded(f, f.input(0), dims), b = expanded(f, f.input(1), dims);
  const bool compares = op == "Equal" || op == "Less" || op == "Greater" || op == "And" || op == "Or" ||
                        op == "LessOrEqual" || op == "GreaterOrEqual";
  Constant y{compares ? ElementType::boolean : a.type, dims, {}, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.size()); ++i) {
    const double p = a.number(i), q = b.number(i);
    if (op == "Div" && q == 0 && !a.floating()) f.fail("divides by 0");
    const double value = op == "Add"              ? p + q
                         : op == "Sub"            ? p - q
                         : op == "Mul"            ? p * q
                         : op == "Div"            ? (a.floating() ? p / q : std::trunc(p / q))
                         : op == "Mod"            ? (q == 0 ? 0 : p - q * std::floor(p / q))
                         : op == "Pow"            ? std::pow(p, q)
                         : op == "Min"            ? std::min(p, q)
                         : op == "Max"            ? std::max(p, q)
                         : op == "Equal"          ? p == q
                         : op == "Less"           ? p < q
                         : op == "Greater"        ? p > q
                         : op == "LessOrEqual"    ? p <= q
                         : op == "GreaterOrEqual" ? p >= q
                         : op == "And"            ? p != 0 && q != 0
                                                  : p != 0 || q != 0;
    if (y.floating()) y.floats.push_back(value);
    if (!y.floating()) y.integers.push_back(wrapped(value));
  }
  return y;
}

Constant unary(const Fold& f, const std::string& op) {
  Constant y = f.input(0);
  if (op == "Not") y.type = ElementType::boolean;
  for (double& v : y.floats) {
    v = op == "Neg"          ? -v
        : op == "Floor"      ? std::floor(v)
        : op == "Ceil"       ? std::ceil(v)
        : op == "Sqrt"       ? std::sqrt(v)
        : op == "Abs"        ? std::fabs(v)
        : op == "Round"      ? std::nearbyint(v)
        : op == "Reciprocal" ? 1 / v
                             : v;
  }
  for (std::int64_t& v : y.integers) {
    v = op == "Neg"   ? wrapped(-static_cast<double>(v))
        : op == "Not" ? (v == 0 ? 1 : 0)
        : op == "Abs" ? wrapped(std::fabs(static_cast<double>(v)))
                      : v;
  }
  return y;
}

Constant where(const Fold& f) {
  const Extents dims = broadcast(f, broadcast(f, f.input(0).dims, f.input(1).dims), f.input(2).dims);
  const Constant which = expanded(f, f.input(0), dims);
  const Constant a = expanded(f, f.input(1), dims), b = expanded(f, f.input(2), dims);
  if (a.floating() != b.floating()) f.fail("chooses between unlike types");
  Constant y = b;
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.size()); ++i) {
    if (which.number(i) == 0) continue;
    if (y.floating()) y.floats[i] = a.floats[i];
    if (!y.floating()) y.integers[i] = a.integers[i];
  }
  return y;
}

Constant reduce_all(const Fold& f, bool product) {
  const Constant& x = f.input(0);
  const Integers axes = f.axes(1);
  double value = product ? 1 : 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    value = product ? value * x.number(i) : value + x.number(i);
  }
  Constant y{x.type, f.attribute("keepdims", 1) != 0 ? Extents(x.dims.size(), 1) : Extents{}, {}, {}};
  if (y.floating()) y.floats = {value};
  if (!y.floating()) y.integers = {wrapped(value)};
  return y;
}

Constant reshape(const Fold& f) {
  const Constant& x = f.input(0);
  Extents dims = f.integers(1);
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && i < x.dims.size()) dims[i] = x.dims[i];
    if (dims[i] == -1) {
      open = &dims[i];
    } else if (dims[i] > 0 && known <= kMaxListed) {
      known *= dims[i];
    }
  }
  if (open != nullptr) *open = known > 0 ? x.size() / known : 0;
  if (count_of(f, dims) != x.size()) f.fail("reshapes a constant to another number of elements");
  return reshaped(x, dims);
}

using Folder = Constant (*)(const Fold&);

const std::map<std::string, Folder>& folders() {
  static const std::map<std::string, Folder> table{
      {"Identity", [](const Fold& f) { return f.input(0); }},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Gather", gather},
      {"Concat", concat},
      {"Slice", slice},
      {"Cast", cast},
      {"ConstantOfShape", constant_of_shape},
      {"Range", range},
      {"Where", where},
      {"Reshape", reshape},
      {"Shape", [](const Fold& f) { return make_shape_constant(f.input(0).dims); }},
      {"Size",
       [](const Fold& f) {
         return Constant{ElementType::s64, {}, {f.input(0).size()}, {}};
       }},
      {"Expand",
       [](const Fold& f) { return expanded(f, f.input(0), broadcast(f, f.input(0).dims, f.integers(1))); }},
      {"ReduceProd", [](const Fold& f) { return reduce_all(f, true); }},
      {"ReduceSum", [](const Fold& f) { return reduce_all(f, false); }},
  };
  return table;
}

/// Whether a join or a reduction of constants is one of all their elements in order; others become layers of
/// the network.
bool is_simple(const Fold& f) {
  if (f.in.empty()) return true;
  const Extents& dims = f.input(0).dims;
  if (f.node.op_type == "Concat") {
    const auto end = dims.begin() + static_cast<std::ptrdiff_t>(f.axis(f.attribute("axis", 0), dims.size()));
    return std::all_of(dims.begin(), end, [](std::int64_t extent) { return extent == 1; });
  }
  if (f.node.op_type != "ReduceSum" && f.node.op_type != "ReduceProd") return true;
  const std::size_t axes = f.axes(1).size();
  if (axes == 0) return f.attribute("noop_with_empty_axes", 0) == 0;
  return axes == dims.size();
}

bool contains(std::initializer_list<const char*> names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
}

}  // namespace

std::string node_text(const Node& node) {
  const std::string& name = !node.name.empty()     ? node.name
                            : node.outputs.empty() ? node.name
                                                   : node.outputs[0];
  return fmt::format("node '{}' ({})", printable(name), printable(node.op_type));
}

Constant make_shape_constant(const Extents& shape) {
  return {ElementType::s64, {static_cast<std::int64_t>(shape.size())}, shape, {}};
}

std::optional<std::vector<Constant>> fold(const Model& model, const Node& node,
                                          const std::vector<const Constant*>& inputs) {
  if (!node.domain.empty() || node.outputs.size() != 1) return std::nullopt;
  const Fold f{model, node, inputs};
  if (contains({"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Equal", "Less", "Greater",
                "LessOrEqual", "GreaterOrEqual", "And", "Or"},
               node.op_type) &&
      inputs.size() == 2) {
    return std::vector<Constant>{arithmetic(f, node.op_type)};
  }
  if (contains({"Neg", "Floor", "Ceil", "Sqrt", "Abs", "Not", "Round", "Reciprocal"}, node.op_type))
    return std::vector<Constant>{unary(f, node.op_type)};
  const auto found = folders().find(node.op_type);
  if (found == folders().end() || !is_simple(f)) return std::nullopt;
  return std::vector<Constant>{found->second(f)};
}

}  // namespace penstock::onnx
