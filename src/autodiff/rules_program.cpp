#include <fmt/format.h>

#include <numeric>

#include "autodiff/rules.h"
#include "base/error.h"

namespace penstock::autodiff {

using ir::Function;
using ir::OpKind;
using ir::Program;
using ir::ProgramWriter;
using ir::TensorId;

namespace {

/// The axes of `y` along which a tensor of shape `x` was repeated.
std::vector<std::int64_t> repeated_axes(const ir::Shape& x, const ir::Shape& y) {
  std::vector<std::int64_t> axes;
  const std::size_t offset = y.rank() - x.rank();
  for (std::size_t i = 0; i < y.rank(); ++i) {
    if (y[i] > 1 && (i < offset || x[i - offset] == 1)) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

/// The program without inputs that it does not use, and those that it does.
std::pair<Program, std::vector<TensorId>> without_unused(const Program& program, const ir::IdList& inputs) {
  const std::vector<bool> used = ir::used_inputs(program);
  std::vector<TensorId> kept;
  std::vector<std::int32_t> number;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    number.push_back(static_cast<std::int32_t>(kept.size()));
    if (used[i]) kept.push_back(inputs[i]);
  }
  const auto shift = program.inputs - static_cast<std::int32_t>(kept.size());
  const auto of = [&](std::int32_t v) {
    return v < 0 ? v : v < program.inputs ? number[static_cast<std::size_t>(v)] : v - shift;
  };
  Program result = program;
  result.inputs = static_cast<std::int32_t>(kept.size());
  for (ir::Step& step : result.steps) step.a = of(step.a), step.b = of(step.b), step.c = of(step.c);
  for (std::int32_t& output : result.outputs) output = of(output);
  return {result, kept};
}

Program only(const Program& program, const std::vector<std::size_t>& outputs) {
  ProgramWriter writer(program.inputs);
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(program.inputs));
  std::iota(inputs.begin(), inputs.end(), 0);
  const auto values = writer.insert(program, inputs);
  std::vector<std::int32_t> chosen;
  for (const std::size_t output : outputs) chosen.push_back(values[output]);
  return writer.finish(chosen);
}

}  // namespace

/// One more program makes the gradients of all inputs, with whatever lies between computed again in it; those
/// of inputs that were repeated are summed up.
void pointwise_rule(RuleContext& context) {
  const Program& program = context.op().attrs_as<ir::PointwiseAttrs>().program;
  std::vector<std::int32_t> of_inputs;
  for (std::int32_t i = 0; i < program.inputs; ++i) {
    if (context.needs(static_cast<std::size_t>(i))) of_inputs.push_back(i);
  }
  // Outputs that lead nowhere have no gradient: the program is looked at without them.
  std::vector<std::size_t> live;
  ir::IdList inputs = context.op().inputs;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    if (context.gradient(i) == ir::kNone) continue;
    live.push_back(i);
    inputs.push_back(context.gradient(i));
  }
  const Program all = ir::gradient_of(only(program, live), of_inputs);
  std::vector<std::size_t> flowing;
  for (std::size_t i = 0; i < of_inputs.size(); ++i) {
    if (!ir::is_zero(all, i)) flowing.push_back(i);
  }
  if (flowing.empty()) return;
  const ir::Shape y = context.shape(context.out(0));
  const auto [backward, kept] = without_unused(only(all, flowing), inputs);
  const bool passes_on = backward.steps.empty() && kept.size() == 1;
  std::vector<TensorId> gradients(flowing.size(), passes_on ? kept[0] : ir::kNone);
  if (!passes_on) {
    gradients = context.emit_shaped(OpKind::pointwise, "backward", kept, ir::PointwiseAttrs{backward},
                                    std::vector<ir::Shape>(flowing.size(), y));
  }
  for (std::size_t k = 0; k < flowing.size(); ++k) {
    const auto input = static_cast<std::size_t>(of_inputs[flowing[k]]);
    const ir::Shape x = context.shape(context.in(input));
    if (x == y) {
      context.pass(input, gradients[k]);
    } else {
      context.emit(OpKind::reduce, fmt::format("backward_sum{}", input), {gradients[k]},
                   ir::ReduceAttrs{ir::Reduction::sum, repeated_axes(x, y)}, {input});
    }
  }
}

void reduce_rule(RuleContext& context) {
  const auto& attrs = context.op().attrs_as<ir::ReduceAttrs>();
  const ir::Shape x = context.shape(context.in(0));
  ir::Shape y = x;
  for (const std::int64_t axis : attrs.axes) y.set(static_cast<std::size_t>(axis), 1);
  TensorId dy = context.dy();
  TensorId result = context.out(0);
  if (context.shape(dy) != y) {
    dy = context.emit_shaped(OpKind::reshape, "backward_shape", {dy}, ir::NoAttrs{}, {y})[0];
  }
  switch (attrs.function) {
    case ir::Reduction::sum:
    case ir::Reduction::mean: {
      const std::int64_t each = x.elements() / y.elements();
      ProgramWriter w(1);
      const auto scaled =
          attrs.function == ir::Reduction::mean ? w.divide(0, w.constant(static_cast<float>(each))) : 0;
      context.emit(OpKind::pointwise, "backward", {dy}, ir::PointwiseAttrs{w.finish({scaled})}, {0});
      return;
    }
    case ir::Reduction::largest:
    case ir::Reduction::smallest: {
      // Places that are equally large share the gradient.
      if (context.shape(result) != y) {
        result = context.emit_shaped(OpKind::reshape, "backward_result", {result}, ir::NoAttrs{}, {y})[0];
      }
      ProgramWriter chosen(2);
      const Program is_chosen = chosen.finish({chosen.apply(Function::equal, 0, 1)});
      const TensorId mask = context.emit_shaped(OpKind::pointwise, "backward_places", {context.in(0), result},
                                                ir::PointwiseAttrs{is_chosen}, {x})[0];
      const TensorId count = context.emit_shaped(OpKind::reduce, "backward_count", {mask},
                                                 ir::ReduceAttrs{ir::Reduction::sum, attrs.axes}, {y})[0];
      ProgramWriter share(3);
      const Program shared = share.finish({share.divide(share.multiply(0, 1), 2)});
      context.emit(OpKind::pointwise, "backward", {mask, dy, count}, ir::PointwiseAttrs{shared}, {0});
      return;
    }
    case ir::Reduction::product:
      break;
  }
  throw UserError(
      fmt::format("{}: a product over axes has no gradient here: write it as a chain of "
                  "multiplications, or as the exponential of a sum of logarithms",
                  context.op().name));
}

}  // namespace penstock::autodiff
