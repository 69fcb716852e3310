#include "kernels/op_cases.h"

#include <ostream>
#include <utility>

namespace penstock::testing {
namespace {

using ir::OpKind;
using ir::Shape;
using Extents = std::vector<std::int64_t>;
using Cases = std::vector<OpCase>;

/// Stride, dilation, padding of every axis the same unless said otherwise.
ir::ConvAttrs conv(std::size_t axes, std::int64_t stride, std::int64_t dilation, std::int64_t padding,
                   std::int64_t groups = 1) {
  ir::ConvAttrs attrs;
  attrs.stride.assign(axes, stride);
  attrs.dilation.assign(axes, dilation);
  attrs.padding_begin.assign(axes, padding);
  attrs.padding_end = attrs.padding_begin;
  attrs.groups = groups;
  return attrs;
}

ir::ConvAttrs with_relu(ir::ConvAttrs attrs) {
  attrs.relu = true;
  return attrs;
}

ir::ConvAttrs uneven_conv(Extents stride, Extents dilation, Extents begin, Extents end,
                          std::int64_t groups = 1) {
  return {std::move(stride), std::move(dilation), std::move(begin), std::move(end), {}, groups, false};
}

ir::ConvAttrs transposed(Extents stride, Extents dilation, Extents padding, Extents output_padding,
                         std::int64_t groups = 1) {
  return {std::move(stride), std::move(dilation), padding, padding, std::move(output_padding), groups, false};
}

void add_conv(Cases& cases) {
  const OpKind kind = OpKind::conv;
  cases.push_back({"conv_3x3", kind, conv(2, 1, 1, 1), {{{2, 3, 7, 5}}, weight({4, 3, 3, 3}), weight({4})}});
  cases.push_back({"conv_1x1_no_bias", kind, conv(2, 1, 1, 0), {{{3, 5, 4, 3}}, weight({7, 5, 1, 1})}});
  cases.push_back(
      {"conv_stride", kind, conv(2, 2, 1, 1), {{{2, 3, 8, 7}}, weight({5, 3, 3, 3}), weight({5})}});
  cases.push_back({"conv_dilation", kind, conv(2, 1, 2, 2), {{{1, 2, 7, 9}}, weight({3, 2, 3, 3})}});
  cases.push_back(
      {"conv_groups", kind, conv(2, 1, 1, 1, 2), {{{2, 6, 5, 5}}, weight({4, 3, 3, 3}), weight({4})}});
  cases.push_back({"conv_depthwise", kind, conv(2, 2, 1, 1, 5), {{{2, 5, 7, 6}}, weight({5, 1, 3, 3})}});
  cases.push_back({"conv_uneven",
                   kind,
                   uneven_conv({2, 1}, {1, 2}, {0, 2}, {1, 1}),
                   {{{2, 3, 6, 8}}, weight({4, 3, 2, 3}), weight({4})}});
  cases.push_back({"conv_rest_of_stride", kind, conv(2, 3, 1, 0), {{{1, 2, 9, 10}}, weight({3, 2, 2, 2})}});
  cases.push_back({"conv_1d", kind, conv(1, 2, 1, 1), {{{2, 3, 9}}, weight({4, 3, 3}), weight({4})}});
  cases.push_back(
      {"conv_3d", kind, conv(3, 1, 1, 1), {{{1, 2, 4, 5, 3}}, weight({3, 2, 3, 3, 3}), weight({3})}});
  cases.push_back({"conv_3d_stride_groups",
                   kind,
                   uneven_conv({1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 0, 1}, 2),
                   {{{2, 4, 4, 5, 5}}, weight({6, 2, 2, 3, 3})}});
  cases.push_back({"conv_relu",
                   kind,
                   with_relu(conv(2, 1, 1, 1)),
                   {{{2, 3, 5, 4}}, weight({4, 3, 3, 3}, Fill::small), weight({4}, Fill::alternating)}});
  cases.push_back({"conv_relu_mixed",
                   kind,
                   with_relu(conv(2, 1, 1, 1)),
                   {{{2, 3, 5, 4}}, weight({4, 3, 3, 3}), weight({4})},
                   {},
                   false});
  cases.push_back({"conv_image",
                   kind,
                   conv(2, 2, 1, 3),
                   {{{2, 3, 19, 17}}, weight({18, 3, 7, 7}), weight({18})},
                   {},
                   false});
  cases.push_back({"conv_channel_tail",
                   kind,
                   conv(2, 1, 1, 1),
                   {{{3, 17, 9, 9}}, weight({35, 17, 3, 3}), weight({35})},
                   {},
                   false});
  cases.push_back({"conv_channel_tail_groups",
                   kind,
                   conv(2, 1, 1, 1, 3),
                   {{{2, 27, 6, 7}}, weight({33, 9, 3, 3}), weight({33})},
                   {},
                   false});
  cases.push_back({"conv_wide",
                   kind,
                   with_relu(conv(2, 2, 1, 0)),
                   {{{2, 64, 8, 8}}, weight({32, 64, 1, 1}), weight({32})},
                   {},
                   false});
}

void add_conv_transpose(Cases& cases) {
  const OpKind kind = OpKind::conv_transpose;
  cases.push_back({"transpose_2x2",
                   kind,
                   transposed({2, 2}, {1, 1}, {0, 0}, {}),
                   {{{2, 4, 3, 5}}, weight({4, 3, 2, 2}), weight({3})}});
  cases.push_back({"transpose_output_padding",
                   kind,
                   transposed({2, 3}, {1, 1}, {1, 0}, {1, 2}),
                   {{{2, 3, 4, 3}}, weight({3, 2, 3, 3}), weight({2})}});
  cases.push_back({"transpose_dilation",
                   kind,
                   transposed({1, 2}, {2, 2}, {1, 2}, {0, 1}),
                   {{{1, 2, 4, 5}}, weight({2, 3, 3, 2})}});
  cases.push_back({"transpose_groups",
                   kind,
                   transposed({2, 2}, {1, 1}, {1, 1}, {0, 0}, 2),
                   {{{2, 4, 4, 3}}, weight({4, 3, 3, 3}), weight({6})}});
  cases.push_back({"transpose_3d",
                   kind,
                   transposed({2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {}),
                   {{{1, 3, 2, 3, 2}}, weight({3, 2, 2, 2, 2}), weight({2})}});
  cases.push_back({"transpose_wide",
                   kind,
                   transposed({2, 2}, {1, 1}, {0, 0}, {}),
                   {{{2, 34, 5, 6}}, weight({34, 17, 2, 2}), weight({17})},
                   {},
                   false});
  // As in U-Net: channels that fill a part of a block.
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{16, 8}, {8, 4}, {32, 16}}) {
    cases.push_back({"transpose_" + std::to_string(in) + "_to_" + std::to_string(out),
                     kind,
                     transposed({2, 2}, {1, 1}, {0, 0}, {}),
                     {{{2, in, 12, 12}}, weight({in, out, 2, 2}), weight({out})}});
    cases.back().finite_differences = false;
    cases.back().in_pytorch = false;
  }
}

void add_products(Cases& cases) {
  cases.push_back({"linear", OpKind::linear, ir::LinearAttrs{}, {{{5, 7}}, weight({3, 7}), weight({3})}});
  cases.push_back({"linear_no_bias", OpKind::linear, ir::LinearAttrs{}, {{{4, 6}}, weight({9, 6})}});
  cases.push_back(
      {"linear_leading", OpKind::linear, ir::LinearAttrs{}, {{{2, 3, 5}}, weight({4, 5}), weight({4})}});
  cases.push_back({"linear_relu",
                   OpKind::linear,
                   ir::LinearAttrs{true},
                   {{{3, 5}}, weight({4, 5}, Fill::small), weight({4}, Fill::alternating)}});
  cases.push_back({"linear_wide",
                   OpKind::linear,
                   ir::LinearAttrs{true},
                   {{{9, 130}}, weight({67, 130}), weight({67})},
                   {},
                   false});
  const OpKind matmul = OpKind::matmul;
  cases.push_back({"matmul", matmul, ir::MatmulAttrs{}, {{{3, 4}}, {{4, 5}}}});
  cases.push_back(
      {"matmul_batched", matmul, ir::MatmulAttrs{false, false, 0.5F}, {{{2, 3, 4, 5}}, {{2, 3, 5, 3}}}});
  cases.push_back(
      {"matmul_transpose_a", matmul, ir::MatmulAttrs{true, false, 2}, {{{2, 4, 3}}, {{2, 4, 5}}}});
  cases.push_back(
      {"matmul_transpose_b", matmul, ir::MatmulAttrs{false, true, 1}, {{{2, 3, 4}}, {{2, 5, 4}}}});
  cases.push_back(
      {"matmul_transpose_both", matmul, ir::MatmulAttrs{true, true, 1.5F}, {{{2, 4, 3}}, {{2, 5, 4}}}});
  cases.push_back({"bias", OpKind::bias, ir::NoAttrs{}, {{{2, 3, 4, 5}}, weight({3})}});
  cases.push_back({"bias_of_vectors", OpKind::bias, ir::NoAttrs{}, {{{4, 7}}, weight({7})}});
}

ir::NormAttrs norm(bool relu, bool add, bool mask, float epsilon = 1e-5F) {
  return {epsilon, relu, add, mask};
}

ir::NormAttrs norm_with_ceiling(bool add, bool mask) {
  ir::NormAttrs attrs = norm(true, add, mask);
  attrs.ceiling = 1;
  return attrs;
}

ir::NormAttrs norm_with_silu(std::int64_t count = 0) {
  ir::NormAttrs attrs = norm(false, false, false);
  attrs.silu = true;
  attrs.count = count;
  return attrs;
}

void add_norms(Cases& cases) {
  const OpKind kind = OpKind::batch_norm;
  const Shape x{3, 4, 5, 3};
  const auto gamma = [](std::int64_t c) { return weight({c}, Fill::positive); };
  cases.push_back({"batch_norm", kind, norm(false, false, false), {{x}, gamma(4), weight({4})}});
  cases.push_back(
      {"batch_norm_vectors", kind, norm(false, false, false, 1e-3F), {{{6, 5}}, gamma(5), weight({5})}});
  cases.push_back(
      {"batch_norm_3d", kind, norm(false, false, false), {{{2, 3, 2, 3, 4}}, gamma(3), weight({3})}});
  cases.push_back(
      {"batch_norm_relu", kind, norm(true, false, true), {{x}, gamma(4), weight({4}, Fill::alternating)}});
  cases.push_back({"batch_norm_relu_without_mask",
                   kind,
                   norm(true, false, false),
                   {{x}, gamma(4), weight({4}, Fill::alternating)}});
  cases.push_back({"batch_norm_add", kind, norm(false, true, false), {{x}, gamma(4), weight({4}), {x}}});
  cases.push_back({"batch_norm_add_relu",
                   kind,
                   norm(true, true, true),
                   {{x}, gamma(4), weight({4}), {x, Fill::alternating}}});
  cases.push_back({"batch_norm_add_relu_without_mask",
                   kind,
                   norm(true, true, false),
                   {{x}, gamma(4), weight({4}), {x, Fill::alternating}}});
  cases.push_back({"batch_norm_add_of_constant",
                   kind,
                   norm(true, true, true),
                   {{x}, gamma(4), weight({4}), fixed(x, Fill::alternating)}});
  cases.push_back({"batch_norm_relu_mixed",
                   kind,
                   norm(true, false, true),
                   {{{2, 19, 7, 5}}, gamma(19), weight({19})},
                   {},
                   false});
  cases.push_back({"batch_norm_add_relu_mixed",
                   kind,
                   norm(true, true, true),
                   {{{3, 24, 5, 7}}, gamma(24), weight({24}), {{3, 24, 5, 7}}},
                   {},
                   false});
  cases.push_back(
      {"batch_norm_relu_ceiling", kind, norm_with_ceiling(false, true), {{x}, gamma(4), weight({4})}});
  cases.push_back({"batch_norm_relu_ceiling_mixed",
                   kind,
                   norm_with_ceiling(true, true),
                   {{{2, 19, 7, 5}}, gamma(19), weight({19}), {{2, 19, 7, 5}}},
                   {},
                   false});
  const auto running = [&](Fill fill) { return fixed({4}, fill); };
  cases.push_back({"batch_norm_silu", kind, norm_with_silu(), {{x}, gamma(4), weight({4})}});
  cases.push_back({"batch_norm_silu_vectors",
                   kind,
                   norm_with_silu(),
                   {{{6, 5}}, gamma(5), weight({5}, Fill::alternating)}});
  cases.push_back({"batch_norm_evaluation",
                   kind,
                   norm(false, false, false),
                   {fixed(x), running(Fill::positive), running(Fill::normal), running(Fill::normal),
                    running(Fill::positive)},
                   {},
                   false});
  cases.push_back({"batch_norm_evaluation_relu_ceiling",
                   kind,
                   norm_with_ceiling(false, false),
                   {fixed(x), running(Fill::positive), running(Fill::normal), running(Fill::normal),
                    running(Fill::positive)},
                   {},
                   false});
  cases.push_back({"batch_norm_evaluation_add_relu",
                   kind,
                   norm(true, true, false),
                   {fixed(x), running(Fill::positive), running(Fill::normal), running(Fill::normal),
                    running(Fill::positive), fixed(x)},
                   {},
                   false});
  const auto positive = [](std::int64_t c) { return fixed({c}, Fill::positive); };
  cases.push_back({"combine_statistics",
                   OpKind::combine_statistics,
                   ir::CombineAttrs{{12, 20, 8}},
                   {fixed({7}), positive(7), fixed({7}), positive(7), fixed({7}), positive(7)},
                   {{7}, {7}},
                   false,
                   false});
  cases.push_back({"batch_norm_backward_sums",
                   OpKind::batch_norm_backward_sums,
                   norm(false, false, false),
                   {fixed(x), fixed(x), fixed({4}), positive(4)},
                   {{4}, {4}},
                   false,
                   false});
  cases.push_back({"batch_norm_backward_sums_add",
                   OpKind::batch_norm_backward_sums,
                   norm(false, true, false),
                   {fixed(x), fixed(x), fixed({4}), positive(4)},
                   {{4}, {4}, x},
                   false,
                   false});
  ir::NormAttrs slice = norm(false, false, false);
  slice.count = 90;
  cases.push_back({"batch_norm_backward_data",
                   OpKind::batch_norm_backward_data,
                   slice,
                   {fixed(x), fixed(x), positive(4), fixed({4}), positive(4), fixed({4}), fixed({4})},
                   {x},
                   false,
                   false});
  cases.push_back({"batch_norm_silu_backward_sums",
                   OpKind::batch_norm_silu_backward_sums,
                   norm_with_silu(),
                   {fixed(x), fixed(x), positive(4), fixed({4}), fixed({4}), positive(4)},
                   {{4}, {4}},
                   false,
                   false});
  cases.push_back(
      {"batch_norm_silu_backward_data",
       OpKind::batch_norm_silu_backward_data,
       norm_with_silu(90),
       {fixed(x), fixed(x), positive(4), fixed({4}), fixed({4}), positive(4), fixed({4}), fixed({4})},
       {x},
       false,
       false});
  cases.push_back({"statistics_update",
                   OpKind::statistics_update,
                   ir::StatisticsAttrs{0.1F, 12},
                   {fixed({7}), fixed({7}, Fill::positive), fixed({7}), fixed({7}, Fill::positive)}});
  cases.push_back({"lrn", OpKind::lrn, ir::LrnAttrs{5, 0.5F, 0.75F, 2}, {{{2, 7, 3, 2}}}});
  cases.push_back({"lrn_even_size", OpKind::lrn, ir::LrnAttrs{4, 1, 0.5F, 1}, {{{2, 6, 3}}}, {}, true});
  cases.push_back({"lrn_few_channels", OpKind::lrn, ir::LrnAttrs{5, 1, 0.75F, 1}, {{{2, 2, 3, 2}}}});
}

void add_pointwise(Cases& cases) {
  const Shape x{2, 3, 5, 4};
  using ir::Activation;
  for (const Activation function :
       {Activation::relu, Activation::leaky_relu, Activation::gelu, Activation::sigmoid, Activation::tanh}) {
    cases.push_back({ir::activation_name(function),
                     OpKind::activation,
                     ir::ActivationAttrs{function, 0.1F},
                     {{x, Fill::spaced}}});
  }
  cases.push_back({"dropout", OpKind::dropout, ir::DropoutAttrs{0.3F, 5}, {{{3, 7, 5}}}});
  cases.push_back({"dropout_of_images", OpKind::dropout, ir::DropoutAttrs{0.5F, 0}, {{{2, 9, 3, 3}}}});
  cases.push_back({"add", OpKind::add, ir::NoAttrs{}, {{x}, {x}}});
  cases.push_back({"multiply", OpKind::multiply, ir::NoAttrs{}, {{x}, {x}}});
  cases.push_back({"softmax", OpKind::softmax, ir::AxisAttrs{1}, {{{4, 7}}}});
  cases.push_back({"softmax_inner", OpKind::softmax, ir::AxisAttrs{1}, {{{2, 5, 3, 4}}}});
  cases.push_back({"softmax_last", OpKind::softmax, ir::AxisAttrs{2}, {{{2, 3, 9}}}});
  cases.push_back({"cross_entropy", OpKind::cross_entropy, ir::MeanAttrs{}, {{{5, 7}}, labels({5})}});
  cases.push_back({"cross_entropy_of_pixels",
                   OpKind::cross_entropy,
                   ir::MeanAttrs{},
                   {{{2, 3, 4, 5}}, labels({2, 4, 5})}});
  cases.push_back({"cross_entropy_of_a_slice",
                   OpKind::cross_entropy,
                   ir::MeanAttrs{120},
                   {{{2, 3, 4, 5}}, labels({2, 4, 5})}});
  cases.back().in_pytorch = false;  // It has no mean over more labels than there are.
  cases.push_back({"count_correct", OpKind::count_correct, ir::NoAttrs{}, {fixed({9, 3}), labels({9})}});
  cases.push_back({"count_correct_pixels",
                   OpKind::count_correct,
                   ir::NoAttrs{},
                   {fixed({2, 4, 3, 5}), labels({2, 3, 5})}});
  cases.push_back({"count_correct_so_far",
                   OpKind::count_correct,
                   ir::NoAttrs{},
                   {fixed({2, 4, 3, 5}), labels({2, 3, 5}), labels({1})}});
  cases.back().in_pytorch = false;
}

ir::PoolAttrs pool(Extents kernel, Extents stride, Extents begin, Extents end, bool include_pad = true) {
  return {std::move(kernel), std::move(stride), std::move(begin), std::move(end), include_pad};
}

void add_pools(Cases& cases) {
  for (const OpKind kind : {OpKind::max_pool, OpKind::avg_pool}) {
    const std::string name = ir::op_name(kind);
    const Fill fill = kind == OpKind::max_pool ? Fill::spaced : Fill::normal;
    cases.push_back({name, kind, pool({2, 2}, {2, 2}, {0, 0}, {0, 0}), {{{2, 3, 6, 7}, fill}}});
    cases.push_back({name + "_overlap", kind, pool({3, 3}, {2, 2}, {1, 1}, {1, 1}), {{{2, 5, 7, 9}, fill}}});
    cases.push_back({name + "_uneven", kind, pool({3, 2}, {1, 2}, {0, 1}, {2, 0}), {{{2, 3, 5, 6}, fill}}});
    cases.push_back(
        {name + "_3d", kind, pool({2, 2, 3}, {2, 1, 2}, {0, 0, 1}, {0, 1, 1}), {{{1, 2, 4, 3, 5}, fill}}});
    cases.push_back({name + "_channel_tail",
                     kind,
                     pool({3, 3}, {2, 2}, {1, 1}, {1, 1}),
                     {{{2, 19, 9, 8}, fill}},
                     {},
                     false});
  }
  cases.push_back({"avg_pool_exclude_pad",
                   OpKind::avg_pool,
                   pool({3, 3}, {1, 2}, {1, 1}, {1, 1}, false),
                   {{{2, 3, 5, 4}}}});
  cases.push_back({"global_avg_pool", OpKind::global_avg_pool, ir::NoAttrs{}, {{{2, 5, 4, 3}}}});
  cases.push_back({"global_avg_pool_3d", OpKind::global_avg_pool, ir::NoAttrs{}, {{{2, 3, 2, 3, 2}}}});
  for (const bool bilinear : {false, true}) {
    const std::string name = bilinear ? "upsample_linear" : "upsample_nearest";
    cases.push_back({name, OpKind::upsample, ir::UpsampleAttrs{{2, 2}, bilinear}, {{{2, 3, 4, 3}}}});
    cases.push_back(
        {name + "_uneven", OpKind::upsample, ir::UpsampleAttrs{{3, 1}, bilinear}, {{{1, 2, 3, 5}}}});
    cases.push_back(
        {name + "_3d", OpKind::upsample, ir::UpsampleAttrs{{2, 3, 2}, bilinear}, {{{1, 2, 2, 3, 2}}}});
    cases.push_back({name + "_1d", OpKind::upsample, ir::UpsampleAttrs{{4}, bilinear}, {{{2, 3, 1}}}});
  }
}

void add_shapes(Cases& cases) {
  cases.push_back(
      {"concat", OpKind::concat, ir::AxisAttrs{1}, {{{2, 3, 4, 5}}, {{2, 1, 4, 5}}, {{2, 4, 4, 5}}}});
  cases.push_back({"concat_last", OpKind::concat, ir::AxisAttrs{2}, {{{2, 3, 4}}, {{2, 3, 5}}}});
  cases.push_back({"concat_with_constant",
                   OpKind::concat,
                   ir::AxisAttrs{1},
                   {{{2, 3, 2, 2}}, fixed({2, 2, 2, 2}), {{2, 1, 2, 2}}}});
  cases.push_back({"concat_channel_blocks",
                   OpKind::concat,
                   ir::AxisAttrs{1},
                   {{{2, 16, 3, 5}}, {{2, 8, 3, 5}}},
                   {},
                   false});
  cases.push_back({"split",
                   OpKind::split,
                   ir::AxisAttrs{1},
                   {{{2, 6, 3, 2}}},
                   {{2, 1, 3, 2}, {2, 3, 3, 2}, {2, 2, 3, 2}}});
  cases.push_back({"split_last", OpKind::split, ir::AxisAttrs{2}, {{{2, 2, 7}}}, {{2, 2, 4}, {2, 2, 3}}});
  cases.push_back({"pad", OpKind::pad, ir::PadAttrs{{0, 0, 1, 2}, {0, 1, 0, 3}, 0.5F}, {{{2, 3, 4, 5}}}});
  cases.push_back(
      {"pad_3d", OpKind::pad, ir::PadAttrs{{0, 0, 1, 0, 2}, {0, 0, 1, 1, 0}, 0}, {{{1, 2, 2, 3, 2}}}});
  cases.push_back({"crop", OpKind::crop, ir::PadAttrs{{0, 1, 1, 2}, {0, 0, 2, 1}, 0}, {{{2, 3, 5, 6}}}});
  cases.push_back({"reshape", OpKind::reshape, ir::NoAttrs{}, {{{2, 3, 4, 5}}}, {{2, 60}}});
  cases.push_back({"reshape_split_axis", OpKind::reshape, ir::NoAttrs{}, {{{6, 8}}}, {{3, 2, 4, 2}}});
  cases.push_back({"transpose", OpKind::transpose, ir::TransposeAttrs{{0, 2, 3, 1}}, {{{2, 3, 4, 5}}}});
  cases.push_back({"transpose_cycle", OpKind::transpose, ir::TransposeAttrs{{2, 0, 1}}, {{{2, 3, 4}}}});
  cases.push_back({"reorder", OpKind::reorder, ir::NoAttrs{}, {fixed({2, 3, 4, 5})}});
  cases.push_back({"input", OpKind::input, ir::PortAttrs{}, {}, {{2, 3, 5, 4}}});
}

void add_updates(Cases& cases) {
  const auto p = fixed({5, 7});
  const auto v = fixed({5, 7}, Fill::positive);
  const OpKind sgd = OpKind::sgd_update;
  const OpKind adam = OpKind::adam_update;
  cases.push_back({"sgd", sgd, ir::SgdAttrs{}, {p, p}});
  cases.push_back({"sgd_weight_decay", sgd, ir::SgdAttrs{0, 0.1F, false}, {p, p}});
  cases.push_back({"sgd_momentum", sgd, ir::SgdAttrs{0.9F, 0.01F, false}, {p, p, p}});
  cases.push_back({"sgd_nesterov", sgd, ir::SgdAttrs{0.9F, 0.01F, true}, {p, p, p}});
  const auto scale = fixed({1}, Fill::positive);
  cases.push_back({"sgd_clipped", sgd, ir::SgdAttrs{.gradient_scale = 0.5F, .clipped = true}, {p, p, scale}});
  cases.push_back({"sgd_momentum_clipped",
                   sgd,
                   ir::SgdAttrs{.momentum = 0.9F, .weight_decay = 0.01F, .clipped = true},
                   {p, p, p, scale}});
  cases.push_back(
      {"adamw_clipped",
       adam,
       ir::AdamAttrs{.weight_decay = 0.1F, .decoupled = true, .gradient_scale = 0.25F, .clipped = true},
       {p, p, p, v, scale}});
  cases.push_back({"adam", adam, ir::AdamAttrs{}, {p, p, p, v}});
  cases.push_back({"adam_weight_decay", adam, ir::AdamAttrs{0.8F, 0.99F, 1e-6F, 0.1F, false}, {p, p, p, v}});
  cases.push_back({"adamw", adam, ir::AdamAttrs{0.9F, 0.999F, 1e-8F, 0.1F, true}, {p, p, p, v}});
}

Cases make_cases() {
  Cases cases;
  add_conv(cases);
  add_conv_transpose(cases);
  add_products(cases);
  add_norms(cases);
  add_pointwise(cases);
  add_pools(cases);
  add_shapes(cases);
  add_updates(cases);
  for (OpCase& text : text_cases()) cases.push_back(std::move(text));
  for (OpCase& op_case : program_cases()) cases.push_back(std::move(op_case));
  return cases;
}

}  // namespace

void PrintTo(const OpCase& op_case, std::ostream* out) {
  *out << op_case.name;
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make_cases();
  return cases;
}

}  // namespace penstock::testing
