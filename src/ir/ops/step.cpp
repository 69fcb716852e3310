#include "ir/ops/rules.h"

/// What a step has besides the network: its data, the updates of its parameters, exchanges between ranks.
namespace penstock::ir::rules {
namespace {

/// p, dp, state of dp's shape and, if it is clipped, one number; an update may be of a part of p.
template <typename UpdateAttrs>
Shapes updated_shapes(const Attrs& attrs, const Shapes& all) {
  const auto& update = attrs.get<UpdateAttrs>();
  Shapes in = all;
  if (update.clipped) {
    expect(in.size() > 2 && in.back().elements() == 1, "what a gradient is scaled by is one number");
    in.pop_back();
  }
  const std::int64_t begin = update.begin;
  for (std::size_t i = 2; i < in.size(); ++i) expect_same(in[1], in[i]);
  expect(begin >= 0 && begin + in[1].elements() <= in[0].elements(),
         "an update of {} elements from {} on is not within {}", in[1].elements(), begin, in[0].elements());
  Shapes out(in.size() - 1, in[1]);
  out[0] = in[0];
  return out;
}

/// It holds the parts one behind the other; their layouts may take more than their elements.
void expect_bucket(const Shape& whole, const Shapes& parts) {
  std::int64_t elements = 0;
  for (const Shape& part : parts) elements += part.elements();
  expect(whole.rank() == 1 && whole[0] >= elements, "a bucket of {} cannot hold {} elements",
         whole.to_string(), elements);
}

void check_start(const OpShapes& op) {
  expect_bucket(op.out[0], op.in);
}

void check_reduce_wait(const OpShapes& op) {
  expect_bucket(op.in[0], op.out);
}

void check_gather_wait(const OpShapes& op) {
  expect(op.in.size() == op.out.size() + 1, "it makes another number of parameters than it takes");
  for (std::size_t i = 0; i < op.out.size(); ++i) expect_outputs(op, i, i + 1, op.in[i + 1]);
  expect(op.attrs.get<ExchangeAttrs>().counts.size() == op.out.size(), "it does not say what goes where");
}

void check_slice(const OpShapes& op) {
  expect(op.out[0].rank() == 1, "a slice has one extent");
}

}  // namespace

std::vector<OpFacts> step_ops() {
  using enum OpKind;
  constexpr auto side_effects = &OpFacts::side_effects;
  constexpr auto dear = &OpFacts::dear;
  return {
      row<PortAttrs>(input, "input", {0, 0}, {1, 1}).holds("", "n").is(side_effects).is(dear),
      row<PortAttrs>(output, "output", {1, 1}, {0, 0}).holds("n", "").is(side_effects).is(dear),
      row<SgdAttrs>(sgd_update, "sgd_update", {2, 4}, {1, 2}).infers(updated_shapes<SgdAttrs>).is(dear),
      row<AdamAttrs>(adam_update, "adam_update", {4, 5}, {3, 3}).infers(updated_shapes<AdamAttrs>).is(dear),
      row<ExchangeAttrs>(reduce_start, "reduce_start", {1, kManyTensors}, {1, 1})
          .checks(check_start)
          .is(side_effects)
          .is(dear),
      row<ExchangeAttrs>(reduce_wait, "reduce_wait", {1, 1}, {0, kManyTensors})
          .checks(check_reduce_wait)
          .is(side_effects)
          .is(&OpFacts::exchange_wait)
          .is(dear),
      row<ExchangeAttrs>(gather_start, "gather_start", {0, kManyTensors}, {1, 1})
          .checks(check_start)
          .is(side_effects)
          .is(dear),
      row<ExchangeAttrs>(gather_wait, "gather_wait", {2, kManyTensors}, {1, kManyTensors})
          .checks(check_gather_wait)
          .is(side_effects)
          .is(&OpFacts::exchange_wait)
          .is(dear),
      row<SliceAttrs>(take_slice, "take_slice", {1, 1}, {1, 1}).checks(check_slice),
  };
}

}  // namespace penstock::ir::rules
