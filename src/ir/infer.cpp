#include "ir/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ir/op_table.h"

namespace penstock::ir {
namespace {

using Extents = std::vector<std::int64_t>;
using Shapes = std::vector<Shape>;

/// Leaves infer_shapes() from any depth; caught there.
struct Misfit {
  std::string text;
};

template <typename... Args>
void expect(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Misfit{fmt::format(text, std::forward<Args>(args)...)};
}

void expect_same(const Shape& a, const Shape& b) {
  expect(a == b, "the shapes {} and {} differ", a.to_string(), b.to_string());
}

void expect_spatial(const Shape& x) {
  expect(x.rank() >= 3 && x.rank() <= 5, "{} is not [N, C] and one to three spatial extents", x.to_string());
}

void expect_one_per_axis(const Shape& x, const char* what, const Extents& values, std::int64_t smallest) {
  const bool fits = values.size() == x.rank() - 2 &&
                    std::all_of(values.begin(), values.end(), [&](auto v) { return v >= smallest; });
  expect(fits, "{} needs one value of at least {} per spatial axis of {}", what, smallest, x.to_string());
}

void expect_vector(const Shape& v, std::int64_t extent, const char* what) {
  expect(v == Shape{extent}, "{} is {} where [{}] is needed", what, v.to_string(), extent);
}

/// Extent of the result of a window that moves over `in` elements.
std::int64_t windows(const Shape& x, std::size_t axis, std::int64_t kernel, std::int64_t stride,
                     std::int64_t dilation, std::int64_t padding) {
  const std::int64_t room = x[axis] + padding - dilation * (kernel - 1) - 1;
  expect(room >= 0, "the kernel covers {} elements along axis {} where {} (padding included) has only {}",
         dilation * (kernel - 1) + 1, axis, x.to_string(), x[axis] + padding);
  return room / stride + 1;
}

void expect_conv_attrs(const Shape& x, const Shape& w, const ConvAttrs& a) {
  expect_spatial(x);
  expect(w.rank() == x.rank(), "weights {} have another rank than {}", w.to_string(), x.to_string());
  expect_one_per_axis(x, "stride", a.stride, 1);
  expect_one_per_axis(x, "dilation", a.dilation, 1);
  expect_one_per_axis(x, "padding", a.padding_begin, 0);
  expect_one_per_axis(x, "padding", a.padding_end, 0);
  expect(a.groups >= 1, "groups {} is not positive", a.groups);
}

Shape conv_shape(const Shapes& in, const ConvAttrs& a) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect_conv_attrs(x, w, a);
  expect(w[1] * a.groups == x[1], "weights {} in {} groups take {} channels, {} has {}", w.to_string(),
         a.groups, w[1] * a.groups, x.to_string(), x[1]);
  expect(w[0] % a.groups == 0, "{} output channels are no multiple of {} groups", w[0], a.groups);
  if (in.size() > 2) expect_vector(in[2], w[0], "the bias");
  Shape y = x;
  y[1] = w[0];
  for (std::size_t i = 0; i < a.stride.size(); ++i) {
    y[i + 2] = windows(x, i + 2, w[i + 2], a.stride[i], a.dilation[i], a.padding_begin[i] + a.padding_end[i]);
  }
  return y;
}

Shape conv_transpose_shape(const Shapes& in, const ConvAttrs& a) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect_conv_attrs(x, w, a);
  if (!a.output_padding.empty()) expect_one_per_axis(x, "output padding", a.output_padding, 0);
  expect(w[0] == x[1], "weights {} take {} channels, {} has {}", w.to_string(), w[0], x.to_string(), x[1]);
  expect(x[1] % a.groups == 0, "{} input channels are no multiple of {} groups", x[1], a.groups);
  if (in.size() > 2) expect_vector(in[2], w[1] * a.groups, "the bias");
  Shape y = x;
  y[1] = w[1] * a.groups;
  for (std::size_t i = 0; i < a.stride.size(); ++i) {
    const std::int64_t extra = a.output_padding.empty() ? 0 : a.output_padding[i];
    expect(extra < std::max(a.stride[i], a.dilation[i]),
           "output padding {} must be less than stride or dilation", extra);
    y[i + 2] = (x[i + 2] - 1) * a.stride[i] - a.padding_begin[i] - a.padding_end[i] +
               a.dilation[i] * (w[i + 2] - 1) + extra + 1;
  }
  return y;
}

Shape linear_shape(const Shapes& in) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect(x.rank() >= 1 && w.rank() == 2, "{} x {} is no linear layer", x.to_string(), w.to_string());
  expect(w[1] == x[x.rank() - 1], "weights {} take {} features, {} has {}", w.to_string(), w[1],
         x.to_string(), x[x.rank() - 1]);
  if (in.size() > 2) expect_vector(in[2], w[0], "the bias");
  Shape y = x;
  y[y.rank() - 1] = w[0];
  return y;
}

Shape matmul_shape(const Shape& a, const Shape& b, const MatmulAttrs& attrs) {
  expect(a.rank() >= 2 && a.rank() == b.rank(), "{} and {} are not matrices of one rank", a.to_string(),
         b.to_string());
  const std::size_t row = a.rank() - 2;
  const std::size_t column = a.rank() - 1;
  for (std::size_t i = 0; i < row; ++i) {
    expect(a[i] == b[i], "the leading extents of {} and {} differ", a.to_string(), b.to_string());
  }
  const std::int64_t inner_a = attrs.transpose_a ? a[row] : a[column];
  const std::int64_t inner_b = attrs.transpose_b ? b[column] : b[row];
  expect(inner_a == inner_b, "the inner extents of {} and {} differ: {} and {}", a.to_string(), b.to_string(),
         inner_a, inner_b);
  Shape y = a;
  y[row] = attrs.transpose_a ? a[column] : a[row];
  y[column] = attrs.transpose_b ? b[row] : b[column];
  return y;
}

Shapes batch_norm_shapes(const Shapes& in, const NormAttrs& a) {
  const Shape& x = in[0];
  expect(x.rank() >= 2, "{} has no channels", x.to_string());
  for (std::size_t i = 1; i < 5; ++i) expect_vector(in[i], x[1], "a vector of the batch norm");
  expect(in.size() == (a.add ? 6U : 5U), "a residual input and the attribute `add` go together");
  if (a.add) expect_same(x, in[5]);
  expect(!a.mask || a.relu, "a mask needs a ReLU");
  return a.mask ? Shapes{x, x} : Shapes{x};
}

Shapes layer_norm_shapes(const Shapes& in) {
  const Shape& x = in[0];
  expect(x.rank() >= 1, "layer norm of a scalar");
  const std::int64_t width = x[x.rank() - 1];
  expect_vector(in[1], width, "gamma");
  expect_vector(in[2], width, "beta");
  const Shape rows{x.elements(0, x.rank() - 1)};
  return {x, rows, rows};
}

Shape pool_shape(const Shape& x, const PoolAttrs& a) {
  expect_spatial(x);
  expect_one_per_axis(x, "kernel", a.kernel, 1);
  expect_one_per_axis(x, "stride", a.stride, 1);
  expect_one_per_axis(x, "padding", a.padding_begin, 0);
  expect_one_per_axis(x, "padding", a.padding_end, 0);
  Shape y = x;
  for (std::size_t i = 0; i < a.kernel.size(); ++i) {
    expect(std::max(a.padding_begin[i], a.padding_end[i]) < a.kernel[i],
           "padding must be smaller than the kernel's {}", a.kernel[i]);
    y[i + 2] = windows(x, i + 2, a.kernel[i], a.stride[i], 1, a.padding_begin[i] + a.padding_end[i]);
  }
  return y;
}

Shape global_pool_shape(const Shape& x) {
  expect_spatial(x);
  Shape y = x;
  for (std::size_t axis = 2; axis < y.rank(); ++axis) y[axis] = 1;
  return y;
}

std::size_t checked_axis(const Shape& x, const AxisAttrs& a) {
  expect(a.axis >= 0 && a.axis < static_cast<std::int64_t>(x.rank()), "{} has no axis {}", x.to_string(),
         a.axis);
  return static_cast<std::size_t>(a.axis);
}

Shape concat_shape(const Shapes& in, const AxisAttrs& a) {
  const std::size_t axis = checked_axis(in[0], a);
  Shape y = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) {
    Shape other = in[i];
    expect(other.rank() == y.rank(), "{} and {} have different ranks", in[0].to_string(), other.to_string());
    y[axis] += other[axis];
    other[axis] = in[0][axis];
    expect(other == in[0], "{} and {} differ outside of axis {}", in[0].to_string(), in[i].to_string(), axis);
  }
  return y;
}

Shape pad_shape(const Shape& x, const PadAttrs& a, int sign) {
  expect(a.begin.size() == x.rank() && a.end.size() == x.rank(), "padding needs one value per axis of {}",
         x.to_string());
  Shape y = x;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    expect(a.begin[i] >= 0 && a.end[i] >= 0, "negative padding of axis {}", i);
    y[i] += sign * (a.begin[i] + a.end[i]);
  }
  return y;
}

Shape upsample_shape(const Shape& x, const UpsampleAttrs& a) {
  expect_spatial(x);
  expect_one_per_axis(x, "factor", a.factor, 1);
  Shape y = x;
  for (std::size_t i = 0; i < a.factor.size(); ++i) y[i + 2] *= a.factor[i];
  return y;
}

Shape transpose_shape(const Shape& x, const TransposeAttrs& a) {
  Extents sorted = a.order;
  std::sort(sorted.begin(), sorted.end());
  bool fits = sorted.size() == x.rank();
  for (std::size_t i = 0; fits && i < sorted.size(); ++i) fits = sorted[i] == static_cast<std::int64_t>(i);
  expect(fits, "the order is no permutation of the axes of {}", x.to_string());
  Shape y = x;
  for (std::size_t i = 0; i < x.rank(); ++i) y[i] = x[static_cast<std::size_t>(a.order[i])];
  return y;
}

void expect_labels(const Shape& logits, const Shape& labels) {
  expect(logits.rank() >= 2, "{} are no logits", logits.to_string());
  Extents dims = logits.dims();
  dims.erase(dims.begin() + 1);
  expect(labels.dims() == dims, "labels {} do not fit logits {}", labels.to_string(), logits.to_string());
}

Shapes dispatch(OpKind kind, const Attrs& attrs, const Shapes& in) {
  switch (kind) {
    case OpKind::conv:
      return {conv_shape(in, std::get<ConvAttrs>(attrs))};
    case OpKind::conv_transpose:
      return {conv_transpose_shape(in, std::get<ConvAttrs>(attrs))};
    case OpKind::linear:
      return {linear_shape(in)};
    case OpKind::matmul:
      return {matmul_shape(in[0], in[1], std::get<MatmulAttrs>(attrs))};
    case OpKind::bias:
      expect(in[0].rank() >= 2, "{} has no channels", in[0].to_string());
      expect_vector(in[1], in[0][1], "the bias");
      return {in[0]};
    case OpKind::batch_norm_statistics:
      expect(in[0].rank() >= 2, "{} has no channels", in[0].to_string());
      return {Shape{in[0][1]}, Shape{in[0][1]}};
    case OpKind::batch_norm:
      return batch_norm_shapes(in, std::get<NormAttrs>(attrs));
    case OpKind::statistics_update:
      for (const Shape& shape : in) expect_same(in[0], shape);
      return {in[0], in[0]};
    case OpKind::layer_norm:
      return layer_norm_shapes(in);
    case OpKind::max_pool: {
      const Shape y = pool_shape(in[0], std::get<PoolAttrs>(attrs));
      return {y, y};
    }
    case OpKind::avg_pool:
      return {pool_shape(in[0], std::get<PoolAttrs>(attrs))};
    case OpKind::global_avg_pool:
      return {global_pool_shape(in[0])};
    case OpKind::activation:
    case OpKind::dropout:
    case OpKind::reorder:
      return {in[0]};
    case OpKind::lrn:
      expect(in[0].rank() >= 2 && std::get<LrnAttrs>(attrs).size >= 1, "{} has no channels",
             in[0].to_string());
      return {in[0]};
    case OpKind::softmax:
      checked_axis(in[0], std::get<AxisAttrs>(attrs));
      return {in[0]};
    case OpKind::add:
    case OpKind::multiply:
      expect_same(in[0], in[1]);
      return {in[0]};
    case OpKind::concat:
      return {concat_shape(in, std::get<AxisAttrs>(attrs))};
    case OpKind::pad:
      return {pad_shape(in[0], std::get<PadAttrs>(attrs), 1)};
    case OpKind::crop:
      return {pad_shape(in[0], std::get<PadAttrs>(attrs), -1)};
    case OpKind::upsample:
      return {upsample_shape(in[0], std::get<UpsampleAttrs>(attrs))};
    case OpKind::transpose:
      return {transpose_shape(in[0], std::get<TransposeAttrs>(attrs))};
    case OpKind::cross_entropy:
      expect_labels(in[0], in[1]);
      return {Shape{1}, in[0]};
    case OpKind::count_correct:
      expect_labels(in[0], in[1]);
      return {Shape{1}};
    case OpKind::sgd_update:
    case OpKind::adam_update: {
      const std::int64_t begin =
          kind == OpKind::sgd_update ? std::get<SgdAttrs>(attrs).begin : std::get<AdamAttrs>(attrs).begin;
      for (std::size_t i = 2; i < in.size(); ++i) expect_same(in[1], in[i]);
      expect(begin >= 0 && begin + in[1].elements() <= in[0].elements(),
             "an update of {} elements from {} on is not within {}", in[1].elements(), begin,
             in[0].elements());
      Shapes out(in.size() - 1, in[1]);
      out[0] = in[0];
      return out;
    }
    default:
      throw InternalError(std::string("infer_shapes: the inputs do not decide the shapes of ") +
                          op_name(kind));
  }
}

}  // namespace

Inferred infer_shapes(OpKind kind, const Attrs& attrs, const std::vector<Shape>& inputs) {
  try {
    const OpInfo& info = op_info(kind);
    expect(inputs.size() >= info.min_inputs && inputs.size() <= info.max_inputs, "{} does not take {} inputs",
           info.name, inputs.size());
    expect(attrs.index() == info.attrs, "{} has attributes of another op", info.name);
    Inferred result{dispatch(kind, attrs, inputs), {}};
    for (const Shape& shape : result.shapes) {
      const auto& dims = shape.dims();
      expect(std::all_of(dims.begin(), dims.end(), [](auto d) { return d > 0; }), "the result would be {}",
             shape.to_string());
    }
    return result;
  } catch (const Misfit& misfit) {
    return {{}, misfit.text};
  }
}

}  // namespace penstock::ir
