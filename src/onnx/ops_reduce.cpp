#include <algorithm>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// Which axes a reduction goes over, and the extents of its result.
struct Reduced {
  Extents axes, kept, dims;  ///< kept: with extents of 1; dims: as the node says
};

Reduced reduced(Importer& at) {
  const Extents& x = at.shape(0);
  const std::vector<std::int64_t> given = axes_of(at);
  std::vector<bool> gone(x.size(), given.empty() && at.integer("noop_with_empty_axes", 0) == 0);
  for (const std::int64_t axis : given) gone[at.axis(axis, x.size())] = true;
  const bool keep = at.integer("keepdims", 1) != 0;
  Reduced result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (gone[i]) result.axes.push_back(static_cast<std::int64_t>(i));
    result.kept.push_back(gone[i] ? 1 : x[i]);
    if (!gone[i] || keep) result.dims.push_back(gone[i] ? 1 : x[i]);
  }
  return result;
}

Value over(Importer& at, Reduction function, Value x, const Reduced& r) {
  return r.axes.empty() ? x : at.net().reduce(function, x, r.axes, true);
}

template <typename F>
void reduce(Importer& at, const F& function) {
  const Reduced r = reduced(at);
  const ElementType type = at.type(0);
  at.set(0, function(at.real_value(0), r), r.dims, type);
}

template <Reduction kFunction>
void plain(Importer& at) {
  reduce(at, [&](Value x, const Reduced& r) {
    return r.axes.empty() ? x : at.net().reduce(kFunction, x, r.axes, true, at.layer());
  });
}

void sum_of(Importer& at, const char* before, const char* after) {
  reduce(at, [&](Value x, const Reduced& r) {
    if (before != nullptr) x = apply(at, before, {x});
    const Value sum = over(at, Reduction::sum, x, r);
    return after == nullptr ? sum : apply(at, after, {sum});
  });
}

/// log(sum(exp(x))) without an overflow of exp.
void log_sum_exp(Importer& at) {
  reduce(at, [&](Value x, const Reduced& r) {
    const Value most = over(at, Reduction::largest, x, r);
    const Value share = apply(at, "exp", {apply(at, "sub", {x, most})});
    return apply(at, "add", {apply(at, "log", {over(at, Reduction::sum, share, r)}), most});
  });
}

Value arg_of(Importer& at, Value x, std::size_t axis, bool smallest, bool last) {
  const auto along = static_cast<std::int64_t>(axis);
  const std::int64_t extent = at.net().shape(x)[axis];
  if (smallest) x = apply(at, "neg", {x});
  if (last) x = at.net().flip(x, along);
  const Value place = at.net().argmax(x, along);
  if (!last) return place;
  return at.net().cast(apply(at, "rsub_scalar", {place}, {static_cast<float>(extent - 1)}), DType::s32);
}

void arg(Importer& at) {
  Extents dims = at.shape(0);
  if (dims.empty()) at.fail("needs an axis");
  const std::size_t axis = at.axis(at.integer("axis", 0), dims.size());
  const Value place = arg_of(at, at.real_value(0), axis, at.node().op_type == "ArgMin",
                             at.integer("select_last_index", 0) != 0);
  dims[axis] = 1;
  if (at.integer("keepdims", 1) == 0) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  at.set(0, place, dims, ElementType::s64);
}

/// 1 at the first of the largest, else 0. Before opset 13 all axes from `axis` on are one.
void hardmax(Importer& at) {
  const Extents dims = at.shape(0);
  if (dims.empty()) at.fail("needs an axis");
  const bool joined = at.opset() < 13;
  std::size_t axis = at.axis(at.integer("axis", joined ? 1 : -1), dims.size());
  Value x = at.real_value(0);
  if (joined) {
    x = at.net().reshape(x, {product_of(dims, 0, axis), product_of(dims, axis, dims.size())});
    axis = 1;
  }
  const std::int64_t extent = at.net().shape(x)[axis];
  at.set(0, one_hot(at, arg_of(at, x, axis, false, false), axis, extent), dims);
}

/// A product with a triangle of ones.
void cumulative_sum(Importer& at) {
  const Extents dims = at.shape(0);
  const std::size_t axis = at.axis(static_cast<std::int64_t>(at.number(1)), dims.size());
  const bool exclusive = at.integer("exclusive", 0) != 0, reverse = at.integer("reverse", 0) != 0;
  const std::int64_t extent = dims[axis];
  constexpr std::int64_t kLongest = 4096;
  if (extent > kLongest) at.fail("sums along an axis that is too long");
  std::vector<double> triangle;
  for (std::int64_t from = 0; from < extent; ++from) {
    for (std::int64_t to = 0; to < extent; ++to) {
      const bool before = reverse ? from > to : from < to;
      triangle.push_back(before || (from == to && !exclusive) ? 1 : 0);
    }
  }
  const ElementType type = at.type(0);
  at.set(0, times_table(at, at.real_value(0), axis, extent, triangle), dims, type);
}

void mean_variance_norm(Importer& at) {
  const Extents dims = at.shape(0);
  Extents axes = at.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const Value x = at.real_value(0);
  const Value centred = apply(at, "sub", {x, at.net().reduce(Reduction::mean, x, axes, true)});
  const Value variance = at.net().reduce(Reduction::mean, apply(at, "square", {centred}), axes, true);
  const Value deviation = apply(at, "add_scalar", {apply(at, "sqrt", {variance})}, {1e-9F});
  at.set(0, at.net().apply("div", {centred, deviation}, {}, at.layer()), dims);
}

void lp_norm(Importer& at) {
  const Extents dims = at.shape(0);
  const auto axis = static_cast<std::int64_t>(at.axis(at.integer("axis", -1), dims.size()));
  const bool squares = at.integer("p", 2) == 2;
  const Value x = at.real_value(0);
  const Value sum = at.net().reduce(Reduction::sum, apply(at, squares ? "square" : "abs", {x}), {axis}, true);
  const Value size = squares ? apply(at, "sqrt", {sum}) : sum;
  // 0 / 0 is 0 here.
  const Value safe = apply(at, "where", {size, size, apply(at, "add_scalar", {size}, {1})});
  at.set(0, at.net().apply("div", {x, safe}, {}, at.layer()), dims);
}

}  // namespace

const OpTable& reduce_ops() {
  static const OpTable table{
      {"ReduceSum", plain<Reduction::sum>},
      {"ReduceMean", plain<Reduction::mean>},
      {"ReduceMax", plain<Reduction::largest>},
      {"ReduceMin", plain<Reduction::smallest>},
      {"ReduceProd", plain<Reduction::product>},
      {"ReduceSumSquare", [](Importer& at) { sum_of(at, "square", nullptr); }},
      {"ReduceL1", [](Importer& at) { sum_of(at, "abs", nullptr); }},
      {"ReduceL2", [](Importer& at) { sum_of(at, "square", "sqrt"); }},
      {"ReduceLogSum", [](Importer& at) { sum_of(at, nullptr, "log"); }},
      {"ReduceLogSumExp", log_sum_exp},
      {"ArgMax", arg},
      {"ArgMin", arg},
      {"Hardmax", hardmax},
      {"CumSum", cumulative_sum},
      {"MeanVarianceNormalization", mean_variance_norm},
      {"LpNormalization", lp_norm},
  };
  return table;
}

}  // namespace penstock::onnx
