#include "ir/attention_sizes.h"
#include "ir/ops/rules.h"

/// What transformers are made of.
namespace penstock::ir::rules {
namespace {

/// Rows of the last axis.
Shape rows_of(const Shape& x) {
  return {x.elements(0, x.rank() - 1)};
}
std::int64_t width_of(const Shape& x) {
  return x[x.rank() - 1];
}

// Attention.

void expect_operands(const AttentionAttrs& a, const Shapes& in) {
  expect(a.heads >= 1 && a.kv_heads >= 1 && a.heads % a.kv_heads == 0,
         "{} heads of queries do not share {} of keys evenly", a.heads, a.kv_heads);
  const Shape& q = in[0];
  if (a.layout == AttentionLayout::packed) {
    const std::int64_t heads = a.heads + 2 * a.kv_heads;
    expect(q.rank() == 3 && q[2] % heads == 0, "{} does not hold {} heads", q.to_string(), heads);
    return;
  }
  expect(in.size() >= 3, "queries, keys and values are three inputs");
  const Shape& k = in[1];
  expect_same(k, in[2]);
  if (a.layout == AttentionLayout::rows) {
    expect(q.rank() == 3 && k.rank() == 3 && q[0] == k[0] && q[2] % a.heads == 0 &&
               k[2] == q[2] / a.heads * a.kv_heads,
           "queries {} and keys {} are not {} and {} heads", q.to_string(), k.to_string(), a.heads,
           a.kv_heads);
  } else {
    expect(q.rank() == 4 && k.rank() == 4 && q[0] == k[0] && q[1] == a.heads && k[1] == a.kv_heads &&
               q[3] == k[3],
           "queries {} and keys {} are not {} and {} heads", q.to_string(), k.to_string(), a.heads,
           a.kv_heads);
  }
}

void expect_mask(const Shape& mask, const AttentionSizes& sizes) {
  const auto fits = [&](std::size_t axis, std::int64_t extent) {
    return mask[axis] == 1 || mask[axis] == extent;
  };
  expect(mask.rank() == 4 && fits(0, sizes.batch) && fits(1, sizes.heads) && fits(2, sizes.queries) &&
             mask[3] == sizes.keys,
         "mask {} does not fit [{}, {}, {}, {}]", mask.to_string(), sizes.batch, sizes.heads, sizes.queries,
         sizes.keys);
}

/// y and the log-sums.
Shapes attention_outputs(const AttentionAttrs& a, const Shapes& in) {
  const AttentionSizes sizes = attention_sizes(a, in);
  Shape y = in[0];
  if (a.layout == AttentionLayout::packed) y.set(2, sizes.heads * sizes.width);
  return {y, Shape{sizes.batch, sizes.heads, sizes.queries}};
}

Shapes attention_shapes(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<AttentionAttrs>();
  expect_operands(a, in);
  const std::size_t operands = attention_operands(a);
  expect(in.size() <= (operands == 1 ? 1 : 4), "packed queries, keys and values have no mask");
  if (in.size() > operands) expect_mask(in[operands], attention_sizes(a, in));
  return attention_outputs(a, in);
}

void check_attention_backward(const OpShapes& op) {
  const auto& a = op.attrs.get<AttentionAttrs>();
  expect_operands(a, op.in);
  const std::size_t operands = attention_operands(a);
  expect(op.in.size() >= operands + 3 && op.in.size() <= operands + (operands == 1 ? 3 : 4) &&
             op.out.size() == operands,
         "the gradient of attention needs what it made");
  const Shapes forward = attention_outputs(a, op.in);
  expect_shape(op.in[operands], forward[0], "y");
  expect_shape(op.in[operands + 1], forward[1], "the log-sums");
  expect_shape(op.in[operands + 2], forward[0], "dy");
  if (op.in.size() > operands + 3) expect_mask(op.in[operands + 3], attention_sizes(a, op.in));
  for (std::size_t i = 0; i < operands; ++i) expect_shape(op.out[i], op.in[i], "a gradient");
}

/// Two products forward, five backward; half of them where half of the scores are hidden.
double attention_flops(const OpShapes& op, double products) {
  const auto& a = op.attrs.get<AttentionAttrs>();
  const AttentionSizes sizes = attention_sizes(a, op.in);
  const double scores = static_cast<double>(sizes.batch * sizes.heads) * static_cast<double>(sizes.queries) *
                        static_cast<double>(sizes.keys);
  return products * 2 * scores * static_cast<double>(sizes.width) * (a.causal ? 0.5 : 1);
}

// Norms along rows.

/// x, gamma, (beta), (z) -> y, (mean), variance, (sum)
Shapes layer_norm_shapes(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<LayerNormAttrs>();
  const Shape& x = in[0];
  expect(x.rank() >= 1, "layer norm of a scalar");
  expect(in.size() == 2U + (a.rms ? 0 : 1) + (a.add ? 1 : 0),
         "a norm along rows has another number of inputs");
  expect_vector(in[1], width_of(x), "gamma");
  if (!a.rms) expect_vector(in[2], width_of(x), "beta");
  if (a.add) expect_same(x, in.back());
  Shapes out{x, rows_of(x)};
  if (!a.rms) out.push_back(rows_of(x));
  if (a.add) out.push_back(x);
  return out;
}

/// x, dy, gamma, (mean), variance, (dsum) -> dx, dgamma, (dbeta)
void check_layer_norm_backward(const OpShapes& op) {
  const auto& a = op.attrs.get<LayerNormAttrs>();
  const Shape& x = op.in[0];
  expect(x.rank() >= 1, "layer norm of a scalar");
  const std::size_t statistics_end = a.rms ? 4 : 5;
  expect(op.in.size() == statistics_end + (a.add ? 1 : 0) && op.out.size() == (a.rms ? 2U : 3U),
         "the gradient of a norm along rows has another number of tensors");
  expect_shape(op.in[1], x, "dy");
  expect_inputs(op, 2, 3, Shape{width_of(x)});
  expect_inputs(op, 3, statistics_end, rows_of(x));
  expect_inputs(op, statistics_end, op.in.size(), x);
  expect_shape(op.out[0], x, "dx");
  expect_outputs(op, 1, op.out.size(), Shape{width_of(x)});
}

// Embeddings and positions.

/// tokens[..., S], w[V, D], (p[P, D]) -> y[..., S, D]
Shapes embedding_shape(const Attrs& /*attrs*/, const Shapes& in) {
  const Shape& tokens = in[0];
  const Shape& w = in[1];
  expect(tokens.rank() >= 1 && w.rank() == 2, "{} is no table of embeddings", w.to_string());
  if (in.size() > 2) {
    expect(in[2].rank() == 2 && in[2][1] == w[1], "positions {} do not fit embeddings {}", in[2].to_string(),
           w.to_string());
    expect(in[2][0] >= width_of(tokens), "a sequence of {} is longer than the {} positions", width_of(tokens),
           in[2][0]);
  }
  Extents dims = tokens.dims();
  dims.push_back(w[1]);
  return {Shape(dims)};
}

/// tokens, dy, (dw so far) -> dw
void check_embedding_backward(const OpShapes& op) {
  expect(op.out[0].rank() == 2 && op.attrs.get<EmbeddingAttrs>().begin >= 0, "{} is no table of embeddings",
         op.out[0].to_string());
  expect_backward_of(OpKind::embedding, EmbeddingAttrs{}, {op.in[0], op.out[0]}, op.in[1]);
  expect_inputs(op, 2, op.in.size(), op.out[0]);
}

void check_position_backward(const OpShapes& op) {
  const Shape& dy = op.in[0];
  expect(dy.rank() >= 2 && op.out[0].rank() == 2 && op.out[0][1] == width_of(dy) &&
             op.out[0][0] >= dy[dy.rank() - 2],
         "{} is no gradient of positions of {}", op.out[0].to_string(), dy.to_string());
}

Shapes rotary_shape(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<RotaryAttrs>();
  expect(in[0].rank() >= 2 && a.head_width >= 1 && width_of(in[0]) % a.head_width == 0,
         "{} has no heads of {}", in[0].to_string(), a.head_width);
  expect(a.rotated >= 2 && a.rotated % 2 == 0 && a.rotated <= a.head_width,
         "{} of {} elements cannot be turned in pairs", a.rotated, a.head_width);
  return {in[0]};
}

/// a, (b), dy -> da, (db)
void check_gate_backward(const OpShapes& op) {
  expect(op.in.size() == op.out.size() + 1, "a gate's gradient needs its inputs");
  check_all_same(op);
}

// The output layer with its loss.

/// x[..., D], w[V, D], labels[...]
void expect_output_layer(const Shapes& in) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect(x.rank() >= 2 && w.rank() == 2 && w[1] == width_of(x), "weights {} are no output layer of {}",
         w.to_string(), x.to_string());
  Extents dims = x.dims();
  dims.pop_back();
  expect(in[2].dims() == dims, "labels {} do not fit {}", in[2].to_string(), x.to_string());
}

/// -> loss, log-sums
Shapes output_loss_shapes(const Attrs& /*attrs*/, const Shapes& in) {
  expect_output_layer(in);
  return {Shape{1}, rows_of(in[0])};
}

/// x, w, labels, log-sums, (dx so far) -> dx, dw
void check_output_loss_backward(const OpShapes& op) {
  expect_output_layer(op.in);
  expect_inputs(op, 3, 4, rows_of(op.in[0]));
  expect_inputs(op, 4, op.in.size(), op.in[0]);
  expect_shape(op.out[0], op.in[0], "dx");
  const std::int64_t begin = op.attrs.get<OutputLossAttrs>().begin;
  expect(op.out[1].rank() == 2 && op.out[1][1] == op.in[1][1] && begin >= 0 &&
             begin + op.out[1][0] <= op.in[1][0],
         "{} from {} on is no gradient of {}", op.out[1].to_string(), begin, op.in[1].to_string());
}

double output_loss_flops(const OpShapes& op, const Shape& rows, double products) {
  return products * 2 * static_cast<double>(op.in[0].elements()) * static_cast<double>(rows[0]);
}

Shapes one_number(const Attrs& /*attrs*/, const Shapes& /*in*/) {
  return {Shape{1}};
}

Shapes two_numbers(const Attrs& /*attrs*/, const Shapes& /*in*/) {
  return {Shape{1}, Shape{1}};
}

}  // namespace

std::vector<OpFacts> text_ops() {
  using enum OpKind;
  constexpr auto dear = &OpFacts::dear;
  return {
      row<AttentionAttrs>(attention, "attention", {1, 4}, {2, 2})
          .holds("fffn", "f")
          .infers(attention_shapes)
          .costs([](const OpShapes& op) { return attention_flops(op, 2); })
          .is(dear),
      row<AttentionAttrs>(attention_backward, "attention_backward", {4, 7}, {1, 3})
          .holds("ffffffn", "f")
          .checks(check_attention_backward)
          .costs([](const OpShapes& op) { return attention_flops(op, 5); })
          .is(dear),
      row<LayerNormAttrs>(layer_norm, "layer_norm", {2, 4}, {2, 4}).infers(layer_norm_shapes),
      row<LayerNormAttrs>(layer_norm_backward, "layer_norm_backward", {4, 6}, {2, 3})
          .checks(check_layer_norm_backward),
      row<NoAttrs>(embedding, "embedding", {2, 3}, {1, 1}).holds("iff", "f").infers(embedding_shape),
      row<EmbeddingAttrs>(embedding_backward, "embedding_backward", {2, 3}, {1, 1})
          .holds("iff", "f")
          .checks(check_embedding_backward),
      row<NoAttrs>(position_backward, "position_backward", {1, 1}, {1, 1}).checks(check_position_backward),
      row<RotaryAttrs>(rotary, "rotary", {1, 1}, {1, 1}).infers(rotary_shape),
      row<GateAttrs>(gate, "gate", {1, 2}, {1, 1}).infers(same_as_inputs),
      row<GateAttrs>(gate_backward, "gate_backward", {2, 3}, {1, 2}).checks(check_gate_backward),
      row<OutputLossAttrs>(linear_cross_entropy, "linear_cross_entropy", {3, 3}, {2, 2})
          .holds("ffi", "f")
          .infers(output_loss_shapes)
          .costs([](const OpShapes& op) { return output_loss_flops(op, op.in[1], 1); })
          .is(dear),
      row<OutputLossAttrs>(linear_cross_entropy_backward, "linear_cross_entropy_backward", {4, 5}, {2, 2})
          .holds("ffiff", "f")
          .checks(check_output_loss_backward)
          .costs([](const OpShapes& op) { return output_loss_flops(op, op.out[1], 3); })
          .is(dear),
      row<NoAttrs>(sum_squares, "sum_squares", {1, kManyTensors}, {1, 1}).infers(one_number),
      row<ClipAttrs>(clip_scale, "clip_scale", {1, kManyTensors}, {2, 2}).infers(two_numbers),
  };
}

}  // namespace penstock::ir::rules
