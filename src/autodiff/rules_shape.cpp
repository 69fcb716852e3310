#include <algorithm>

#include "autodiff/rules.h"

namespace penstock::autodiff {

using ir::OpKind;

namespace {

/// Where each of the parts lies along the axis of the whole, as what is around it.
std::vector<ir::PadAttrs> places(const RuleContext& c, const ir::IdList& parts, std::size_t axis) {
  std::int64_t total = 0;
  for (const ir::TensorId part : parts) total += c.shape(part)[axis];
  std::vector<ir::PadAttrs> result;
  std::int64_t before = 0;
  for (const ir::TensorId part : parts) {
    const ir::Shape& shape = c.shape(part);
    ir::PadAttrs place;
    place.begin.assign(shape.rank(), 0);
    place.end.assign(shape.rank(), 0);
    place.begin[axis] = before;
    before += shape[axis];
    place.end[axis] = total - before;
    result.push_back(std::move(place));
  }
  return result;
}

std::size_t axis_of(const RuleContext& context) {
  return static_cast<std::size_t>(context.op().attrs_as<ir::AxisAttrs>().axis);
}

}  // namespace

void concat_rule(RuleContext& context) {
  const auto& parts = context.op().inputs;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(i);
  if (std::all_of(all.begin(), all.end(), [&](std::size_t i) { return context.needs(i); })) {
    context.emit(OpKind::split, "backward", {context.dy()}, context.op().attrs, all);
    return;
  }
  const auto around = places(context, parts, axis_of(context));
  for (const std::size_t i : all) {
    if (!context.needs(i)) continue;
    context.emit(OpKind::crop, "backward_" + std::to_string(i), {context.dy()}, around[i], {i});
  }
}

void split_rule(RuleContext& context) {
  const auto& parts = context.op().outputs;
  std::vector<ir::TensorId> gradients;
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.push_back(context.gradient(i));
  if (std::find(gradients.begin(), gradients.end(), ir::kNone) == gradients.end()) {
    context.emit(OpKind::concat, "backward", gradients, context.op().attrs, {0});
    return;
  }
  // A part that leads nowhere has gradient zero: the others are padded with it.
  const auto around = places(context, parts, axis_of(context));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (gradients[i] == ir::kNone) continue;
    context.emit(OpKind::pad, "backward_" + std::to_string(i), {gradients[i]}, around[i], {0});
  }
}

void pad_rule(RuleContext& context) {
  auto attrs = context.op().attrs_as<ir::PadAttrs>();
  attrs.value = 0;
  context.emit(OpKind::crop, "backward", {context.dy()}, attrs, {0});
}

void crop_rule(RuleContext& context) {
  auto attrs = context.op().attrs_as<ir::PadAttrs>();
  attrs.value = 0;
  context.emit(OpKind::pad, "backward", {context.dy()}, attrs, {0});
}

void reshape_rule(RuleContext& context) {
  context.emit(OpKind::reshape, "backward", {context.dy()}, ir::NoAttrs{}, {0});
}

void transpose_rule(RuleContext& context) {
  const auto& order = context.op().attrs_as<ir::TransposeAttrs>().order;
  ir::TransposeAttrs inverse;
  inverse.order.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse.order[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  context.emit(OpKind::transpose, "backward", {context.dy()}, inverse, {0});
}

}  // namespace penstock::autodiff
