#include "kernels/op_cases.h"

namespace penstock::testing {
namespace {

using ir::AttentionLayout;
using ir::OpKind;
using ir::Shape;
using Cases = std::vector<OpCase>;

CaseInput some_labels(Shape shape) {
  return fixed(std::move(shape), Fill::some_labels);
}

ir::AttentionAttrs attention(AttentionLayout layout, std::int64_t heads, std::int64_t kv_heads, bool causal,
                             float dropout = 0) {
  ir::AttentionAttrs attrs;
  attrs.layout = layout;
  attrs.heads = heads;
  attrs.kv_heads = kv_heads;
  attrs.causal = causal;
  attrs.scale = 0.5F;
  attrs.dropout = dropout;
  attrs.key = 4;
  return attrs;
}

void add_attention(Cases& cases) {
  const OpKind kind = OpKind::attention;
  const auto packed = AttentionLayout::packed;
  const auto rows = AttentionLayout::rows;
  const auto heads = AttentionLayout::heads;
  cases.push_back({"attention", kind, attention(packed, 2, 2, false), {{{2, 7, 18}}}});
  cases.push_back({"attention_causal", kind, attention(packed, 3, 3, true), {{{2, 6, 36}}}});
  cases.push_back({"attention_grouped", kind, attention(packed, 4, 2, true), {{{1, 9, 40}}}});
  cases.push_back(
      {"attention_rows", kind, attention(rows, 2, 1, false), {{{2, 5, 6}}, {{2, 8, 3}}, {{2, 8, 3}}}});
  cases.push_back({"attention_added_mask",
                   kind,
                   attention(heads, 3, 3, false),
                   {{{2, 3, 4, 5}}, {{2, 3, 6, 5}}, {{2, 3, 6, 5}}, fixed({2, 1, 4, 6})}});
  cases.push_back({"attention_kept_mask",
                   kind,
                   attention(heads, 2, 1, true),
                   {{{2, 2, 9, 3}}, {{2, 1, 9, 3}}, {{2, 1, 9, 3}}, fixed({1, 2, 1, 9}, Fill::kept)}});
  cases.push_back({"attention_rows_mask",
                   kind,
                   attention(rows, 2, 2, false),
                   {{{2, 5, 6}}, {{2, 7, 6}}, {{2, 7, 6}}, fixed({2, 1, 1, 7}, Fill::kept)}});
  cases.push_back({"attention_dropout", kind, attention(packed, 2, 2, false, 0.3F), {{{2, 7, 18}}}});
  // Several blocks both ways, some of them short.
  cases.push_back({"attention_long", kind, attention(packed, 2, 1, false), {{{1, 211, 80}}}, {}, false});
  cases.push_back(
      {"attention_long_causal", kind, attention(packed, 2, 2, true), {{{1, 203, 102}}}, {}, false});
  cases.push_back(
      {"attention_long_dropout", kind, attention(packed, 1, 1, true, 0.1F), {{{2, 230, 24}}}, {}, false});
  cases.push_back({"attention_more_keys",
                   kind,
                   attention(rows, 1, 1, true),
                   {{{1, 50, 16}}, {{1, 260, 16}}, {{1, 260, 16}}},
                   {},
                   false});
  cases.push_back({"attention_long_mask",
                   kind,
                   attention(heads, 2, 2, false),
                   {{{1, 2, 50, 9}}, {{1, 2, 200, 9}}, {{1, 2, 200, 9}}, fixed({1, 2, 50, 200})},
                   {},
                   false});
}

/// Sizes that fast kernels treat in their own ways.
void add_long_attention(Cases& cases) {
  const OpKind kind = OpKind::attention;
  const auto packed = AttentionLayout::packed;
  const auto rows = AttentionLayout::rows;
  const auto heads = AttentionLayout::heads;
  const std::size_t first = cases.size();
  // A vision transformer's tokens; heads that are one, two and three vectors and a bit wide.
  cases.push_back({"attention_images", kind, attention(packed, 2, 2, false), {{{1, 197, 384}}}, {}, false});
  cases.push_back({"attention_wide_heads", kind, attention(packed, 1, 1, true), {{{2, 87, 120}}}, {}, false});
  cases.push_back(
      {"attention_vector_heads", kind, attention(packed, 4, 2, true), {{{1, 75, 136}}}, {}, false});
  cases.push_back(
      {"attention_odd_heads", kind, attention(packed, 2, 1, false, 0.2F), {{{1, 34, 204}}}, {}, false});
  // One query, as when a text is written; two keys; blocks of keys that some queries do not see at all.
  cases.push_back({"attention_one_query",
                   kind,
                   attention(rows, 2, 1, false),
                   {{{2, 1, 64}}, {{2, 300, 32}}, {{2, 300, 32}}},
                   {},
                   false});
  cases.push_back({"attention_two_keys",
                   kind,
                   attention(rows, 1, 1, true),
                   {{{1, 30, 20}}, {{1, 2, 20}}, {{1, 2, 20}}},
                   {},
                   false});
  cases.push_back(
      {"attention_blocks_causal", kind, attention(packed, 2, 1, true, 0.1F), {{{1, 530, 64}}}, {}, false});
  cases.push_back(
      {"attention_more_queries",
       kind,
       attention(heads, 2, 2, true),
       {{{1, 2, 300, 24}}, {{1, 2, 40, 24}}, {{1, 2, 40, 24}}, fixed({1, 1, 300, 40}, Fill::kept)},
       {},
       false});
  cases.push_back(
      {"attention_blocks_mask",
       kind,
       attention(heads, 2, 1, false),
       {{{1, 2, 90, 33}}, {{1, 1, 290, 33}}, {{1, 1, 290, 33}}, fixed({1, 2, 90, 290}, Fill::kept)},
       {},
       false});
  for (std::size_t i = first; i < cases.size(); ++i) cases[i].in_pytorch = false;
}

void add_text_norms(Cases& cases) {
  const OpKind kind = OpKind::layer_norm;
  const auto attrs = [](bool rms, bool add) { return ir::LayerNormAttrs{1e-5F, rms, add}; };
  const auto gamma = [](std::int64_t width) { return weight({width}, Fill::positive); };
  cases.push_back({"layer_norm", kind, attrs(false, false), {{{5, 7}}, gamma(7), weight({7})}});
  cases.push_back({"layer_norm_leading", kind, attrs(false, false), {{{2, 3, 10}}, gamma(10), weight({10})}});
  cases.push_back(
      {"layer_norm_add", kind, attrs(false, true), {{{2, 3, 9}}, gamma(9), weight({9}), {{2, 3, 9}}}});
  cases.push_back(
      {"layer_norm_rows", kind, attrs(false, false), {{{70, 33}}, gamma(33), weight({33})}, {}, false});
  cases.push_back({"rms_norm", kind, attrs(true, false), {{{5, 7}}, gamma(7)}});
  cases.push_back({"rms_norm_add", kind, attrs(true, true), {{{2, 3, 17}}, gamma(17), {{2, 3, 17}}}});
}

void add_linear(Cases& cases) {
  ir::LinearAttrs turned;
  turned.turned = true;
  cases.push_back(
      {"linear_sequence", OpKind::linear, ir::LinearAttrs{}, {{{2, 3, 5}}, weight({7, 5}), weight({7})}});
  cases.push_back({"linear_turned", OpKind::linear, turned, {{{2, 3, 5}}, weight({5, 7}), weight({7})}});
  cases.push_back({"linear_turned_no_bias", OpKind::linear, turned, {{{6, 5}}, weight({5, 18})}});
  ir::LinearAttrs some;
  some.begin = 2;
  cases.push_back({"linear_some_rows",
                   OpKind::linear_backward_weights,
                   some,
                   {fixed({2, 3, 5}), fixed({2, 3, 7})},
                   {{4, 5}}});
  some.turned = true;
  cases.push_back({"linear_some_rows_turned",
                   OpKind::linear_backward_weights,
                   some,
                   {fixed({2, 3, 5}), fixed({2, 3, 7})},
                   {{3, 7}}});
}

void add_embeddings(Cases& cases) {
  const OpKind kind = OpKind::embedding;
  cases.push_back({"embedding", kind, ir::NoAttrs{}, {labels({2, 5}), weight({4, 3})}});
  cases.push_back({"embedding_some", kind, ir::NoAttrs{}, {some_labels({3, 2, 4}), weight({3, 5})}});
  cases.push_back(
      {"embedding_positions", kind, ir::NoAttrs{}, {labels({2, 5}), weight({3, 4}), weight({6, 4})}});
  cases.push_back({"embedding_some_rows",
                   OpKind::embedding_backward,
                   ir::EmbeddingAttrs{1},
                   {labels({3, 4}), fixed({3, 4, 5}), fixed({2, 5})},
                   {{2, 5}}});
  ir::RotaryAttrs rotary;
  rotary.head_width = 6;
  rotary.rotated = 6;
  rotary.base = 50;
  cases.push_back({"rotary", OpKind::rotary, rotary, {{{2, 5, 12}}}});
  rotary.rotated = 4;
  rotary.interleaved = true;
  cases.push_back({"rotary_interleaved", OpKind::rotary, rotary, {{{2, 2, 5, 6}}}});
  rotary.head_width = rotary.rotated = 16;
  rotary.interleaved = false;
  rotary.factor = 4;
  rotary.low_turns = 1;
  rotary.high_turns = 3;
  rotary.original_length = 20;
  cases.push_back({"rotary_stretched", OpKind::rotary, rotary, {{{1, 9, 32}}}});
}

void add_gates(Cases& cases) {
  for (const ir::Gate function : {ir::Gate::silu, ir::Gate::gelu, ir::Gate::gelu_tanh}) {
    const std::string name = ir::gate_name(function);
    cases.push_back({"gate_" + name, OpKind::gate, ir::GateAttrs{function}, {{{3, 7}}}});
    cases.push_back(
        {"gate_" + name + "_gated", OpKind::gate, ir::GateAttrs{function}, {{{2, 3, 5}}, {{2, 3, 5}}}});
  }
}

void add_output_losses(Cases& cases) {
  const OpKind kind = OpKind::linear_cross_entropy;
  cases.push_back(
      {"output_loss", kind, ir::OutputLossAttrs{}, {{{2, 3, 5}}, weight({7, 5}), labels({2, 3})}});
  cases.push_back(
      {"output_loss_some", kind, ir::OutputLossAttrs{0.2F}, {{{9, 5}}, weight({6, 5}), some_labels({9})}});
  // Several parts of the vocabulary, and of the tokens.
  cases.push_back({"output_loss_vocabulary",
                   kind,
                   ir::OutputLossAttrs{0.1F},
                   {{{1, 3, 4}}, weight({1601, 4}), labels({1, 3})},
                   {},
                   false});
  cases.push_back({"output_loss_tokens",
                   kind,
                   ir::OutputLossAttrs{},
                   {{{1, 1030, 3}}, weight({5, 3}), some_labels({1, 1030})},
                   {},
                   false});
  ir::OutputLossAttrs some;
  some.begin = 2;
  cases.push_back({"output_loss_some_rows",
                   OpKind::linear_cross_entropy_backward,
                   some,
                   {fixed({2, 3, 5}), fixed({7, 5}), some_labels({2, 3}), fixed({6}), fixed({2, 3, 5})},
                   {{2, 3, 5}, {4, 5}}});
}

}  // namespace

std::vector<OpCase> text_cases() {
  Cases cases;
  add_attention(cases);
  add_long_attention(cases);
  add_text_norms(cases);
  add_linear(cases);
  add_embeddings(cases);
  add_gates(cases);
  add_output_losses(cases);
  cases.push_back(
      {"sum_squares", OpKind::sum_squares, ir::NoAttrs{}, {fixed({5, 7}), fixed({3}), fixed({2, 1, 9})}});
  const auto sum = fixed({1}, Fill::positive);
  cases.push_back({"clip_scale", OpKind::clip_scale, ir::ClipAttrs{0.3F}, {sum, sum}});
  cases.push_back({"clip_scale_weighted", OpKind::clip_scale, ir::ClipAttrs{0.3F, 0.25F}, {sum, sum}});
  cases.push_back({"clip_scale_short", OpKind::clip_scale, ir::ClipAttrs{100}, {sum, sum, sum}});
  return cases;
}

}  // namespace penstock::testing
