#include <cmath>
#include <limits>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Sizes {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, past = 0;
};

/// [B, S, heads * D] or [B, heads, S, D] -> [B, heads, S, D]
Value in_heads(Importer& at, std::size_t input, const char* attribute) {
  const Extents x = at.shape(input);
  if (x.size() == 4) return at.value(input);
  const std::int64_t heads = at.integer(attribute, 0);
  if (x.size() != 3 || heads < 1 || x[2] % heads != 0) at.fail("has heads that do not divide its inputs");
  const Value split = at.net().reshape(at.value(input), {x[0], x[1], heads, x[2] / heads});
  return at.net().transpose(split, {0, 2, 1, 3});
}

/// Each head of keys serves several of queries that follow each other.
Value repeated(Importer& at, Value x, std::int64_t times) {
  if (times == 1) return x;
  const Extents d = at.net().shape(x);
  const Value one = at.net().reshape(x, {d[0], d[1], 1, d[2], d[3]});
  const Value many = at.net().expand(one, {d[0], d[1], times, d[2], d[3]});
  return at.net().reshape(many, {d[0], d[1] * times, d[2], d[3]});
}

/// 0 where the flag is set, else minus infinity.
Value bias_of(Importer& at, Value flag) {
  return apply(at, "where", {flag, at.table({1}, {0}), at.table({1}, {kHidden})});
}

/// The mask as a number that is added to scores, as long as there are keys.
Value mask_bias(Importer& at, const Sizes& s) {
  Value mask = at.value(3);
  if (at.net().dtype(mask) != DType::f32) mask = bias_of(at, mask);
  const Extents dims = at.net().shape(mask);
  if (dims.back() >= s.keys || dims.back() == 1) return mask;
  Extents begin(dims.size(), 0), end(dims.size(), 0);
  end.back() = s.keys - dims.back();
  return at.net().pad(mask, begin, end, -std::numeric_limits<float>::infinity());
}

/// j - i for query i and key j, moved by `offset`.
Value distances(Importer& at, const Sizes& s, std::int64_t offset) {
  if (s.queries > (1 << 24) / s.keys) at.fail("is too long");
  std::vector<double> values;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    for (std::int64_t j = 0; j < s.keys; ++j) values.push_back(static_cast<double>(j - i + offset));
  }
  return at.table({s.queries, s.keys}, values);
}

/// All that hides keys from queries as one number that is added to scores; none: nothing is hidden.
Value all_bias(Importer& at, const Sizes& s) {
  Value bias;
  const auto add = [&](Value more) { bias = bias == Value{} ? more : apply(at, "add", {bias, more}); };
  if (at.has(3)) add(mask_bias(at, s));
  Value lengths;
  if (at.has(6)) lengths = at.net().reshape(at.value(6), {s.batch, 1, 1, 1});
  if (at.integer("is_causal", 0) != 0) {
    // Key j is seen by query i up to j = i + past, or i + length - queries where lengths are given.
    const Value seen = at.has(6) ? apply(at, "less_equal", {distances(at, s, s.queries), lengths})
                                 : apply(at, "less_equal", {distances(at, s, -s.past), at.table({1}, {0})});
    add(bias_of(at, seen));
  }
  if (at.has(6)) {
    std::vector<double> places;
    for (std::int64_t j = 0; j < s.keys; ++j) places.push_back(static_cast<double>(j));
    add(bias_of(at, apply(at, "less", {at.table({s.keys}, places), lengths})));
  }
  return bias;
}

void attention(Importer& at) {
  check_precision(at);
  NetworkBuilder& net = at.net();
  for (const char* window : {"left_window_size", "right_window_size"}) {
    if (at.integer(window, -1) >= 0) at.fail("has a sliding window, which is not supported");
  }
  const bool flat = at.shape(0).size() == 3;
  const Value q = in_heads(at, 0, "q_num_heads");
  Value k = in_heads(at, 1, "kv_num_heads"), v = in_heads(at, 2, "kv_num_heads");
  Sizes s;
  if (at.has(4)) {
    s.past = at.shape(4)[2];
    k = net.concat({at.value(4), k}, 2);
    v = net.concat({at.value(5), v}, 2);
  }
  at.set(1, k);
  at.set(2, v);
  const Extents dq = net.shape(q), dk = net.shape(k);
  s.batch = dq[0], s.heads = dq[1], s.kv_heads = dk[1], s.queries = dq[2], s.keys = dk[2];
  if (s.heads % s.kv_heads != 0) at.fail("has heads of keys that do not divide those of queries");
  const float scale = at.real("scale", 1 / std::sqrt(static_cast<float>(dq[3])));
  const std::int64_t times = s.heads / s.kv_heads;
  Value scores = net.matmul(q, repeated(at, k, times), {false, true, scale});
  const std::int64_t shown = at.integer("qk_matmul_output_mode", 0);
  const Extents dims = net.shape(scores);
  if (shown == 0) at.set(3, scores, dims);
  if (const float cap = at.real("softcap", 0); cap > 0)
    scores = apply(at, "mul_scalar", {apply(at, "tanh", {apply(at, "div_scalar", {scores}, {cap})})}, {cap});
  if (shown == 1) at.set(3, scores, dims);
  const Value bias = all_bias(at, s);
  Value shares;
  if (bias == Value{}) {
    if (shown == 2) at.set(3, scores, dims);
    shares = net.softmax(scores, 3);
  } else {
    const Value moved = apply(at, "add", {scores, bias});
    if (shown == 2) at.set(3, moved, dims);
    // A query that sees no key has no shares; minus infinity alone would make them 0 / 0.
    const Value seen = apply(at, "less", {at.table({1}, {-3e38}), bias});
    const Value low = at.table({1}, {-1e30});
    shares = net.softmax(apply(at, "where", {seen, moved, low}), 3);
    shares = apply(at, "where", {seen, shares, at.table({1}, {0})});
  }
  if (shown == 3) at.set(3, shares, dims);
  Value y = net.matmul(shares, repeated(at, v, times), {}, at.layer());
  if (!flat) return at.set(0, y);
  y = net.transpose(y, {0, 2, 1, 3});
  const Extents d = net.shape(y);
  at.set(0, y, {d[0], d[1], d[2] * d[3]});
}

/// Pairs of a head's elements are turned by angles whose cosines and sines are given.
void rotary(Importer& at) {
  NetworkBuilder& net = at.net();
  const Extents in = at.shape(0);
  Value x = at.value(0);
  if (in.size() == 3) {
    const std::int64_t heads = at.integer("num_heads", 0);
    if (heads < 1 || in[2] % heads != 0) at.fail("has heads that do not divide its input");
    x = net.reshape(x, {in[0], in[1], heads, in[2] / heads});
  } else if (in.size() == 4) {
    x = net.transpose(x, {0, 2, 1, 3});
  } else {
    at.fail("needs an input [B, S, W] or [B, heads, S, D]");
  }
  const Extents d = net.shape(x);  // [B, S, heads, D]
  const std::int64_t given = at.integer("rotary_embedding_dim", 0);
  const std::int64_t rotated = given == 0 ? d[3] : given;
  if (rotated < 2 || rotated > d[3] || rotated % 2 != 0)
    at.fail("turns another number of elements than pairs");
  const std::int64_t half = rotated / 2;
  const auto angles = [&](std::size_t input) {
    Value cache = at.value(input);
    if (at.has(3)) cache = net.gather(cache, at.value(3), 0);
    if (net.shape(cache) != Extents{d[0], d[1], half}) at.fail("has cosines or sines of another shape");
    return net.reshape(cache, {d[0], d[1], 1, half});
  };
  const Value cosine = angles(1), sine = angles(2);
  const bool side_by_side = at.integer("interleaved", 0) != 0;
  const Value a = side_by_side ? net.slice(x, 3, 0, half, half == 1 ? 1 : 2) : net.slice(x, 3, 0, half);
  const Value b = side_by_side ? net.slice(x, 3, 1, half, half == 1 ? 1 : 2) : net.slice(x, 3, half, half);
  const Value real = apply(at, "sub", {apply(at, "mul", {cosine, a}), apply(at, "mul", {sine, b})});
  const Value other = apply(at, "add", {apply(at, "mul", {sine, a}), apply(at, "mul", {cosine, b})});
  Value y = side_by_side ? net.reshape(net.stack({real, other}, 4), {d[0], d[1], d[2], rotated})
                         : net.concat({real, other}, 3);
  if (rotated < d[3]) y = net.concat({y, net.slice(x, 3, rotated, d[3] - rotated)}, 3);
  if (in.size() == 4) y = net.transpose(y, {0, 2, 1, 3});
  at.set(0, y, in);
}

}  // namespace

const OpTable& attention_ops() {
  static const OpTable table{{"Attention", attention}, {"RotaryEmbedding", rotary}};
  return table;
}

}  // namespace penstock::onnx
