#include "data/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace penstock {
namespace {

using Value = std::function<float(int y, int x)>;

std::vector<float> resize(int in_height, int in_width, int out_height, int out_width, const Value& value) {
  std::vector<float> out(static_cast<std::size_t>(2 * out_height * out_width), 99.0F);
  RowResizer resizer(2, in_height, in_width, out_height, out_width, out.data());
  std::vector<float> row(static_cast<std::size_t>(2 * in_width));
  for (int y = 0; y < in_height; ++y) {
    for (int x = 0; x < in_width; ++x) {
      row[static_cast<std::size_t>(x)] = value(y, x);
      row[static_cast<std::size_t>(in_width + x)] = -value(y, x);
    }
    if (!resizer.add_row(row.data())) break;
  }
  for (std::size_t i = 0; i < out.size() / 2; ++i) EXPECT_EQ(out[i], -out[out.size() / 2 + i]);
  out.resize(out.size() / 2);
  return out;
}

TEST(RowResizer, KeepsEqualSizesExactly) {
  const auto out = resize(7, 5, 7, 5, [](int y, int x) { return std::sin(static_cast<float>(y * 5 + x)); });
  for (int i = 0; i < 35; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], std::sin(static_cast<float>(i)));
}

TEST(RowResizer, KeepsAFlatImageFlat) {
  for (const int in : {1, 2, 9, 100}) {
    for (const int out_size : {1, 3, 10, 64}) {
      for (const float value : resize(in, in + 5, out_size, out_size, [](int, int) { return 3.0F; })) {
        EXPECT_NEAR(value, 3.0F, 1e-5) << in << " to " << out_size;
      }
    }
  }
}

TEST(RowResizer, KeepsARampARampInTheMiddle) {
  // Away from the border, where the filter is cut. A filter sampled at odd places is a little off: 0.15 of
  // 100.
  for (const int out_size : {5, 20, 31, 80}) {
    const auto out =
        resize(40, 60, out_size, out_size, [](int y, int x) { return static_cast<float>(2 * y + x); });
    const double scale = 40.0 / out_size;
    for (int y = out_size / 3; y < out_size - out_size / 3; ++y) {
      for (int x = 0; x < out_size; ++x) {
        const double want = 2 * ((y + 0.5) * scale - 0.5) + (x + 0.5) * scale + 10 - 0.5;
        EXPECT_NEAR(out[static_cast<std::size_t>(y * out_size + x)], want, out_size == 31 ? 0.25 : 1e-3)
            << out_size;
      }
    }
  }
}

TEST(RowResizer, CountsEveryPixelWhenItShrinks) {
  // A single bright pixel anywhere in the crop is seen; sampling at points would miss most of them.
  for (int bright = 0; bright < 64; bright += 5) {
    const auto out =
        resize(64, 64, 8, 8, [&](int y, int x) { return y == bright && x == 63 - bright ? 64.0F : 0.0F; });
    double sum = 0;
    for (const float value : out) sum += value;
    // Less in the corners, which fewer outputs reach.
    EXPECT_GT(sum, bright < 8 || bright > 55 ? 0.35 : 0.8) << bright;
    EXPECT_LT(sum, 1.3) << bright;
  }
}

}  // namespace
}  // namespace penstock
