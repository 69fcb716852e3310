#include <algorithm>

#include "ir/functions.h"
#include "kernels/op_cases.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using ir::Program;
using Cases = std::vector<OpCase>;

OpCase pointwise(const std::string& name, const Program& program, std::vector<CaseInput> inputs) {
  OpCase made{name, OpKind::pointwise, ir::PointwiseAttrs{program}, std::move(inputs)};
  made.in_pytorch = false;
  return made;
}

OpCase other(const std::string& name, OpKind kind, ir::Attrs attrs, std::vector<CaseInput> inputs,
             std::vector<ir::Shape> outputs = {}) {
  OpCase made{name, kind, std::move(attrs), std::move(inputs), std::move(outputs)};
  made.in_pytorch = false;
  return made;
}

/// Every function with a name, on elements that are no multiple of eight.
void add_functions(Cases& cases) {
  const std::vector<std::string> of_positive{"log",   "sqrt", "rsqrt",     "reciprocal",
                                             "acosh", "pow",  "pow_scalar"};
  const std::vector<std::string> of_small{"asin", "acos", "atanh", "tan", "log1p"};
  const std::vector<std::string> flat{
      "sign",          "floor",       "ceil",        "round",      "trunc",       "isnan",
      "isinf",         "less",        "equal",       "greater",    "less_equal",  "not_equal",
      "greater_equal", "logical_not", "logical_and", "logical_or", "logical_xor", "remainder"};
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : ir::function_names()) {
    std::vector<float> parameters;
    if (name == "pow_scalar") parameters = {2.5F};
    if (name == "clip") parameters = {-0.73F, 0.91F};
    if (name == "threshold") parameters = {0.1F, 0.3F};
    if (name.ends_with("_scalar") && parameters.empty()) parameters = {1.7F};
    const Program program = ir::named_function(name, parameters);
    const Fill fill = name == "acosh"            ? Fill::large
                      : is_in(of_positive, name) ? Fill::positive
                      : is_in(of_small, name)    ? Fill::small
                                                 : Fill::spaced;
    std::vector<CaseInput> inputs;
    for (std::int32_t i = 0; i < program.inputs; ++i) {
      const bool condition = name == "where" && i == 0;
      inputs.push_back({{3, 7, 13},
                        condition                 ? Fill::kept
                        : name == "div" && i == 1 ? Fill::positive
                                                  : fill});
      inputs.back().differentiable = !is_in(flat, name) && !condition;
    }
    OpCase made = pointwise("function_" + name, program, std::move(inputs));
    made.finite_differences = !is_in(flat, name);
    if (name == "remainder") {
      for (CaseInput& input : made.inputs) input.differentiable = true;
    }
    cases.push_back(std::move(made));
  }
}

void add_programs(Cases& cases) {
  ir::ProgramWriter w(3);
  const auto silu = w.multiply(0, w.apply(ir::Function::sigmoid, 0));
  const Program gated = w.finish({w.add(w.multiply(silu, 1), 2), w.subtract(silu, 1)});
  cases.push_back(pointwise("program_two_outputs", gated, {{{2, 8, 3, 5}}, {{2, 8, 3, 5}}, {{2, 8, 3, 5}}}));
  const Program mul = ir::named_function("mul");
  const Program add = ir::named_function("add");
  cases.push_back(pointwise("broadcast_channels", mul, {{{2, 5, 3, 4}}, {{5, 1, 1}}}));
  cases.push_back(pointwise("broadcast_samples", mul, {{{2, 16, 3, 4}}, {{2, 16, 1, 1}}}));
  cases.push_back(pointwise("broadcast_pixels", add, {{{2, 8, 3, 4}}, {{2, 1, 3, 4}}}));
  cases.push_back(pointwise("broadcast_rows", add, {{{3, 4, 7}}, {{7}}}));
  cases.push_back(pointwise("broadcast_scalar", mul, {{{3, 300}}, {{1}}}));
  cases.push_back(pointwise("broadcast_both", add, {{{4, 1, 5}}, {{3, 1}}}));
  cases.push_back(pointwise("broadcast_middle", mul, {{{2, 3, 4, 5}}, {{2, 1, 4, 1}}}));
  OpCase expand = pointwise("expand", ir::named_function("copy"), {{{3, 1, 5}}});
  expand.outputs = {{2, 3, 4, 5}};
  cases.push_back(expand);
  cases.push_back(pointwise("where_mask", ir::named_function("where"),
                            {fixed({2, 1, 5}, Fill::kept), {{2, 3, 5}}, {{3, 1}}}));
  OpCase compared = pointwise("compare_to_mask", ir::named_function("less"),
                              {fixed({3, 11}, Fill::normal), fixed({11}, Fill::normal)});
  compared.output_type = ir::DType::u8;
  cases.push_back(compared);
  OpCase cast =
      pointwise("cast_to_integers", ir::named_function("mul_scalar", {3}), {fixed({3, 11}, Fill::normal)});
  cast.output_type = ir::DType::s32;
  cases.push_back(cast);
  cases.push_back(
      pointwise("cast_labels", ir::named_function("add_scalar", {0.5F}), {fixed({13}, Fill::labels)}));
}

void add_reductions(Cases& cases) {
  using ir::Reduction;
  const auto reduce = [&](const std::string& name, Reduction function, std::vector<std::int64_t> axes,
                          ir::Shape shape, std::vector<ir::Shape> outputs = {}) {
    cases.push_back(other("reduce_" + name, OpKind::reduce, ir::ReduceAttrs{function, std::move(axes)},
                          {{std::move(shape), Fill::spaced}}, std::move(outputs)));
  };
  reduce("sum_last", Reduction::sum, {2}, {3, 5, 19});
  reduce("sum_first", Reduction::sum, {0}, {5, 3, 7});
  reduce("sum_middle", Reduction::sum, {1}, {3, 5, 300});
  reduce("sum_all", Reduction::sum, {0, 1, 2}, {3, 4, 5}, {{1}});
  reduce("sum_channels", Reduction::sum, {0, 2, 3}, {3, 16, 4, 5}, {{16}});
  reduce("mean_of_images", Reduction::mean, {2, 3}, {2, 16, 3, 5});
  reduce("mean_between", Reduction::mean, {0, 2}, {3, 4, 5, 2});
  reduce("largest", Reduction::largest, {1}, {3, 9, 4});
  reduce("smallest", Reduction::smallest, {0, 2}, {3, 4, 5}, {{4}});
  reduce("nothing", Reduction::sum, {1}, {3, 1, 5});
  reduce("all_of_many", Reduction::mean, {0, 1}, {301, 311}, {{1}});
  cases.back().inputs[0].fill = Fill::positive;
  cases.back().finite_differences = false;
  reduce("few_columns", Reduction::sum, {0}, {20001, 5}, {{5}});
  cases.back().inputs[0].fill = Fill::positive;
  cases.back().finite_differences = false;
  cases.push_back(other("reduce_product", OpKind::reduce, ir::ReduceAttrs{Reduction::product, {1}},
                        {fixed({3, 5, 4}, Fill::positive)}));
  cases.back().finite_differences = false;
  cases.push_back(other("argmax", OpKind::argmax, ir::AxisAttrs{1}, {fixed({3, 7, 2}, Fill::normal)}));
}

void add_indices(Cases& cases) {
  cases.push_back(other("slice_steps", OpKind::slice, ir::StridedAttrs{{0, 1, 6}, {1, 2, -3}}, {{{2, 6, 7}}},
                        {{2, 3, 3}}));
  cases.push_back(other("slice_flip", OpKind::slice, ir::StridedAttrs{{0, 0, 4}, {1, 1, -1}}, {{{2, 3, 5}}},
                        {{2, 3, 5}}));
  cases.push_back(
      other("gather_rows", OpKind::gather, ir::AxisAttrs{0}, {{{5, 7}}, fixed({2, 4}, Fill::labels)}));
  cases.push_back(
      other("gather_middle", OpKind::gather, ir::AxisAttrs{1}, {{{2, 4, 3}}, fixed({5}, Fill::labels)}));
  cases.push_back(other("log_softmax", OpKind::log_softmax, ir::AxisAttrs{1}, {{{4, 7}}}));
  cases.push_back(other("log_softmax_inner", OpKind::log_softmax, ir::AxisAttrs{1}, {{{2, 5, 3, 4}}}));
}

void add_losses(Cases& cases) {
  const auto nll = [&](const std::string& name, ir::NllAttrs attrs, ir::Shape shape, ir::Shape labels,
                       bool weights) {
    std::vector<CaseInput> inputs{{shape}, fixed(std::move(labels), Fill::some_labels)};
    if (weights) inputs.push_back(fixed({shape[1]}, Fill::positive));
    cases.push_back(other("nll_" + name, OpKind::nll_loss, attrs, std::move(inputs)));
  };
  nll("plain", {}, {7, 5}, {7}, false);
  nll("weights", {}, {7, 5}, {7}, true);
  nll("smoothing", {0.1F, 1}, {7, 5}, {7}, false);
  nll("pixels", {0.2F, 0}, {3, 4, 5, 3}, {3, 5, 3}, true);
}

}  // namespace

std::vector<OpCase> program_cases() {
  Cases cases;
  add_functions(cases);
  add_programs(cases);
  add_reductions(cases);
  add_indices(cases);
  add_losses(cases);
  return cases;
}

}  // namespace penstock::testing
