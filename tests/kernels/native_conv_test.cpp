#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/kernel.h"
#include "kernels/native/conv_kernels.h"
#include "kernels/op_cases.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

struct Size {
  std::int64_t images, in, out, height, width;
};

OpCase conv_case(const std::string& name, const Size& size, const ir::ConvAttrs& attrs, std::int64_t kernel,
                 bool bias) {
  OpCase c;
  c.name = name;
  c.kind = ir::OpKind::conv;
  c.attrs = attrs;
  c.inputs = {{.shape = {size.images, size.in, size.height, size.width}},
              {.shape = {size.out, size.in, kernel, kernel}, .weight = true}};
  if (bias) c.inputs.push_back({.shape = {size.out}, .weight = true});
  return c;
}

ir::ConvAttrs conv_attrs(std::int64_t stride, std::int64_t padding, std::int64_t dilation = 1,
                         bool relu = false) {
  return {.stride = {stride, stride},
          .dilation = {dilation, dilation},
          .padding_begin = {padding, padding},
          .padding_end = {padding, padding},
          .output_padding = {},
          .groups = 1,
          .relu = relu};
}

OpCase volume_case() {
  OpCase c;
  c.name = "volume";
  c.kind = ir::OpKind::conv;
  c.attrs = ir::ConvAttrs{.stride = {1, 2, 1},
                          .dilation = {1, 1, 1},
                          .padding_begin = {1, 1, 0},
                          .padding_end = {1, 1, 1},
                          .output_padding = {},
                          .groups = 1,
                          .relu = false};
  c.inputs = {{.shape = {2, 16, 4, 5, 6}}, {.shape = {24, 16, 3, 3, 2}, .weight = true}};
  return c;
}

/// `channels` in groups of `each`.
OpCase grouped_case(const std::string& name, const Size& size, ir::ConvAttrs attrs, std::int64_t kernel,
                    std::int64_t each, bool bias) {
  attrs.groups = size.in / each;
  OpCase c = conv_case(name, size, attrs, kernel, bias);
  c.inputs[1].shape.set(1, each);
  return c;
}

/// Padding on some sides only, as bands of an image have it.
OpCase uneven_case() {
  ir::ConvAttrs attrs = conv_attrs(1, 0);
  attrs.padding_begin = {0, 1};
  attrs.padding_end = {1, 0};
  return grouped_case("groups_of_four_uneven", {2, 16, 16, 9, 16}, attrs, 3, 4, false);
}

/// All channel counts in whole blocks of eight, some of sixteen: what our own convolutions are for.
std::vector<OpCase> cases() {
  const auto same = conv_attrs(1, 1);
  return {
      conv_case("winograd", {3, 16, 32, 9, 12}, same, 3, false),
      conv_case("winograd_bias_relu", {2, 24, 40, 8, 7}, conv_attrs(1, 1, 1, true), 3, true),
      conv_case("winograd_valid", {6, 32, 16, 10, 9}, conv_attrs(1, 0), 3, false),
      conv_case("winograd_full", {6, 16, 16, 6, 6}, conv_attrs(1, 2), 3, true),
      conv_case("winograd_one_tile", {24, 16, 24, 2, 2}, same, 3, false),
      conv_case("winograd_many_channels", {3, 280, 16, 8, 8}, same, 3, false),
      conv_case("winograd_three_blocks_of_sixteen", {3, 32, 48, 8, 7}, conv_attrs(1, 1, 1, true), 3, true),
      conv_case("winograd_more_than_a_panel", {3, 272, 48, 8, 8}, same, 3, false),
      conv_case("winograd_one_tile_of_sixteen", {40, 16, 48, 2, 2}, same, 3, true),
      conv_case("winograd_many_tiles", {2, 16, 16, 31, 33}, same, 3, false),
      conv_case("one_by_one", {3, 16, 72, 5, 7}, conv_attrs(1, 0), 1, false),
      conv_case("one_by_one_bias", {1, 8, 8, 3, 3}, conv_attrs(1, 0), 1, true),
      conv_case("one_by_one_stride", {2, 24, 32, 7, 8}, conv_attrs(2, 0), 1, false),
      conv_case("stride", {2, 16, 24, 9, 11}, conv_attrs(2, 1), 3, true),
      conv_case("dilation", {2, 16, 16, 11, 10}, conv_attrs(1, 2, 2), 3, false),
      conv_case("five_by_five", {2, 8, 40, 20, 21}, conv_attrs(1, 2), 5, false),
      conv_case("wide_rows", {1, 8, 16, 3, 250}, same, 3, false),
      grouped_case("depthwise_five", {3, 16, 16, 9, 12}, conv_attrs(1, 2), 5, 1, true),
      grouped_case("depthwise_five_stride", {2, 24, 24, 11, 8}, conv_attrs(2, 2), 5, 1, false),
      grouped_case("depthwise_seven", {2, 8, 8, 7, 7}, conv_attrs(1, 3), 7, 1, false),
      grouped_case("depthwise_seven_small", {2, 8, 8, 4, 3}, conv_attrs(1, 3), 7, 1, true),
      grouped_case("depthwise_dilation", {1, 8, 8, 12, 13}, conv_attrs(1, 4, 2), 5, 1, false),
      grouped_case("depthwise_even", {2, 8, 8, 9, 9}, conv_attrs(1, 1), 4, 1, false),
      grouped_case("groups_of_four", {2, 32, 32, 6, 7}, conv_attrs(1, 1), 3, 4, true),
      grouped_case("groups_of_four_stride", {2, 16, 16, 9, 8}, conv_attrs(2, 1), 3, 4, false),
      grouped_case("groups_of_two", {2, 16, 16, 6, 7}, conv_attrs(1, 1, 1, true), 3, 2, false),
      grouped_case("groups_of_two_wide", {3, 32, 32, 5, 17}, conv_attrs(1, 1), 3, 2, true),
      grouped_case("groups_of_four_wide", {9, 32, 32, 7, 29}, conv_attrs(1, 1, 1, true), 3, 4, true),
      grouped_case("groups_of_four_valid", {2, 16, 16, 8, 11}, conv_attrs(1, 0), 3, 4, false),
      grouped_case("groups_of_four_full", {2, 16, 16, 5, 6}, conv_attrs(1, 2), 3, 4, false),
      grouped_case("groups_of_four_five", {2, 16, 16, 9, 15}, conv_attrs(1, 2), 5, 4, true),
      grouped_case("groups_of_eight", {2, 48, 48, 9, 28}, conv_attrs(1, 1), 3, 8, true),
      grouped_case("groups_of_eight_stride", {2, 32, 32, 15, 31}, conv_attrs(2, 1), 3, 8, false),
      grouped_case("groups_of_eight_leap", {2, 32, 32, 10, 23}, conv_attrs(3, 0), 2, 8, true),
      grouped_case("groups_of_eight_dilation", {2, 32, 32, 9, 10}, conv_attrs(1, 2, 2), 3, 8, false),
      uneven_case(),
      volume_case(),
  };
}

class NativeConvTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(NativeConvTest, AgreesWithTheReference) {
  const auto expected = run_case(*kernels::make_reference_backend(), GetParam());
  EXPECT_EQ(difference(run_case(*kernels::make_cpu_backend(), GetParam()), expected, 2e-5), "");
}

TEST_P(NativeConvTest, ThreadsChangeNoBit) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(3);
  const auto backend = kernels::make_cpu_backend();
  const auto three = run_case(*backend, GetParam());
  omp_set_num_threads(1);
  const auto one = run_case(*backend, GetParam());
  omp_set_num_threads(threads);
  EXPECT_EQ(difference(one, three, 0), "");
}

/// A 3x3 convolution of stride one as Winograd's kernels see it.
kernels::native::ConvShape winograd_shape(const Size& size, std::int64_t padding) {
  kernels::native::ConvShape shape;
  shape.lanes = kernels::native::winograd_lanes();
  shape.images = size.images;
  shape.in_blocks = size.in / shape.lanes;
  shape.out_blocks = size.out / shape.lanes;
  shape.in = {1, size.height, size.width};
  shape.out = {1, size.height + 2 * padding - 2, size.width + 2 * padding - 2};
  shape.kernel = {1, 3, 3};
  shape.padding = {0, padding, padding};
  return shape;
}

TEST(Winograd, DoesTheCasesThatBearItsName) {
  int counted = 0;
  for (const OpCase& c : cases()) {
    if (!c.name.starts_with("winograd")) continue;
    const ir::Shape& x = c.inputs[0].shape;
    const Size size{x[0], x[1], c.inputs[1].shape[0], x[2], x[3]};
    const std::int64_t lanes = kernels::native::winograd_lanes();
    if (size.in % lanes != 0 || size.out % lanes != 0) continue;
    const auto& attrs = c.attrs.get<ir::ConvAttrs>();
    EXPECT_TRUE(kernels::native::suits_winograd(winograd_shape(size, attrs.padding_begin[0]))) << c.name;
    ++counted;
  }
  EXPECT_GE(counted, 7);
}

TEST(Winograd, IsNotWorthItsTransformedWeightsForAFewSmallImages) {
  EXPECT_FALSE(kernels::native::suits_winograd(winograd_shape({4, 512, 512, 2, 2}, 1)));
  EXPECT_TRUE(kernels::native::suits_winograd(winograd_shape({16, 512, 512, 7, 7}, 1)));
}

INSTANTIATE_TEST_SUITE_P(All, NativeConvTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::testing
