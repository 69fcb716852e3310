#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// ONNX keeps (momentum) of the old statistics where PyTorch takes (momentum) of the new ones.
constexpr float kUsualKept = 0.9F;

/// A vector over axis 1 of x, spread over x's other axes.
Value along_channels(Importer& at, Value vector, const Extents& x) {
  Extents dims(x.size(), 1);
  dims[1] = x[1];
  return at.net().reshape(vector, dims);
}

/// Statistics that are not the file's own are values like any other.
Value norm_by_values(Importer& at, float epsilon) {
  const Extents x = at.shape(0);
  const auto channels = [&](std::size_t input) { return along_channels(at, at.value(input), x); };
  const Value centred = apply(at, "sub", {at.value(0), channels(3)});
  const Value scale = apply(at, "rsqrt", {apply(at, "add_scalar", {channels(4)}, {epsilon})});
  const Value normal = apply(at, "mul", {centred, apply(at, "mul", {scale, channels(1)})});
  return at.net().apply("add", {normal, channels(2)}, {}, at.layer());
}

void batch_norm(Importer& at) {
  const Extents x = at.shape(0);
  if (x.size() < 2) at.fail("needs an input [N, C, ...]");
  for (std::size_t i = 1; i < 5; ++i) {
    if (at.shape(i) != Extents{x[1]}) at.fail("has scales or statistics of another number than channels");
  }
  const float epsilon = at.real("epsilon", 1e-5F);
  if (at.integer("training_mode", 0) != 0 && !at.trains())
    at.fail("normalises by the batch's statistics, which is done only where the network is trained");
  if (!at.is_initializer(3) || !at.is_initializer(4)) return at.set(0, norm_by_values(at, epsilon), x);
  const Value gamma = at.value(1), beta = at.value(2);
  const Value mean = at.state(3, true), variance = at.state(4, true);
  at.set(0, at.net().batch_norm(at.value(0), gamma, beta, mean, variance, epsilon,
                                1 - at.real("momentum", kUsualKept), at.layer()));
}

Value filled(Importer& at, std::int64_t count, double value) {
  return at.table({count}, std::vector<double>(static_cast<std::size_t>(count), value));
}

/// Mean and 1 / deviation of each row, as the outputs 1 and 2 that a layer norm may have.
void set_statistics(Importer& at, Value rows, float epsilon, const Extents& dims) {
  if (!at.wants(1) && !at.wants(2)) return;
  const Value mean = at.net().reduce(Reduction::mean, rows, {1}, true);
  at.set(1, mean, dims);
  const Value squares = apply(at, "square", {apply(at, "sub", {rows, mean})});
  const Value variance = at.net().reduce(Reduction::mean, squares, {1}, true);
  at.set(2, apply(at, "rsqrt", {apply(at, "add_scalar", {variance}, {epsilon})}), dims);
}

/// Over `axis` and all behind it, which become one.
void layer_norm(Importer& at) {
  const Extents x = at.shape(0);
  const std::size_t axis = at.axis(at.integer("axis", -1), x.size());
  const std::int64_t width = product_of(x, axis, x.size());
  const float epsilon = at.real("epsilon", 1e-5F);
  const bool rms = at.node().op_type == "RMSNormalization";
  const bool plain = axis + 1 == x.size() && x.size() > 1;
  Value rows = at.value(0);
  if (!plain) rows = at.net().reshape(rows, {product_of(x, 0, axis), width});
  const auto vector = [&](std::size_t input) {
    if (product_of(at.shape(input)) != width) at.fail("has a scale of another shape than what it normalises");
    const Value v = at.value(input);
    return at.net().shape(v) == Extents{width} ? v : at.net().reshape(v, {width});
  };
  if (rms) return at.set(0, at.net().rms_norm(rows, vector(1), epsilon, at.layer()), x);
  const Value beta = at.has(2) ? vector(2) : filled(at, width, 0);
  at.set(0, at.net().layer_norm(rows, vector(1), beta, epsilon, at.layer()), x);
  Extents statistics = x;
  for (std::size_t i = axis; i < x.size(); ++i) statistics[i] = 1;
  if (plain && (at.wants(1) || at.wants(2))) rows = at.net().reshape(rows, {product_of(x, 0, axis), width});
  set_statistics(at, rows, epsilon, statistics);
}

/// Each of `groups` of a sample's channels by its own mean and deviation; then scale and bias of channels.
void norm_in_groups(Importer& at, std::int64_t groups, const Extents& x, Value scale, Value bias) {
  if (groups < 1 || x[1] % groups != 0) at.fail("has groups that do not divide the channels");
  const std::int64_t rows = x[0] * groups, width = product_of(x) / rows;
  const Value normal = at.net().layer_norm(at.net().reshape(at.value(0), {rows, width}), filled(at, width, 1),
                                           filled(at, width, 0), at.real("epsilon", 1e-5F), at.layer());
  const Value scaled = apply(at, "mul", {at.net().reshape(normal, x), along_channels(at, scale, x)});
  at.set(0, apply(at, "add", {scaled, along_channels(at, bias, x)}), x);
}

void instance_norm(Importer& at) {
  const Extents x = at.shape(0);
  if (x.size() < 3) at.fail("needs an input [N, C, ...]");
  norm_in_groups(at, x[1], x, at.value(1), at.value(2));
}

/// Before opset 21 scale and bias are of groups, from it on of channels.
void group_norm(Importer& at) {
  const Extents x = at.shape(0);
  if (x.size() < 3) at.fail("needs an input [N, C, ...]");
  const std::int64_t groups = at.integer("num_groups", 0);
  if (groups < 1 || x[1] % groups != 0) at.fail("has groups that do not divide the channels");
  const auto of_channels = [&](std::size_t input) {
    const Value v = at.value(input);
    if (at.opset() >= 21 || groups == x[1]) return v;
    const Value spread = at.net().expand(at.net().reshape(v, {groups, 1}), {groups, x[1] / groups});
    return at.net().reshape(spread, {x[1]});
  };
  norm_in_groups(at, groups, x, of_channels(1), of_channels(2));
}

void lrn(Importer& at) {
  LrnOptions options;
  options.size = at.integer("size", 0);
  options.alpha = at.real("alpha", 1e-4F);
  options.beta = at.real("beta", 0.75F);
  options.k = at.real("bias", 1);
  if (options.size < 1) at.fail("has no size");
  at.set(0, at.net().lrn(at.value(0), options, at.layer()));
}

}  // namespace

const OpTable& norm_ops() {
  static const OpTable table{{"BatchNormalization", batch_norm}, {"LayerNormalization", layer_norm},
                             {"RMSNormalization", layer_norm},   {"InstanceNormalization", instance_norm},
                             {"GroupNormalization", group_norm}, {"LRN", lrn}};
  return table;
}

}  // namespace penstock::onnx
