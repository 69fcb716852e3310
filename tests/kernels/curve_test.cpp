#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/functions.h"
#include "kernels/native/program_kernel.h"

namespace penstock::kernels::native {
namespace {

/// GELU and the like may have loops of their own, and large tensors are written past the caches: neither
/// the size nor the place of an element changes its bits.
class CurveTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr std::size_t kPiece = 1003;
  static constexpr std::size_t kCount = (std::size_t{6} << 20) + 2 * kPiece + 5;

  static std::vector<float> run(const ir::Program& program, const float* x, const float* dy,
                                std::size_t count) {
    std::vector<float> y(count);
    run(program, x, dy, count, y.data());
    return y;
  }
  static void run(const ir::Program& program, const float* x, const float* dy, std::size_t count, float* y) {
    const std::vector<ProgramInput> inputs(static_cast<std::size_t>(program.inputs));
    const auto kernel = make_program(program, inputs, {ir::DType::f32}, static_cast<std::int64_t>(count));
    const std::vector<const void*> in{x, dy};
    const std::vector<void*> out{y};
    KernelArgs args;
    args.inputs = in;
    args.outputs = out;
    kernel->run(args);
  }
  static std::vector<float> spread() {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      values[i] = static_cast<float>(i * 7919 % 200003) / 10000.0F - 10.0F;
    return values;
  }

  const ir::Program value_ = ir::named_function(GetParam());
};

TEST_P(CurveTest, BitsDoNotDependOnTheSize) {
  const std::vector<float> x = spread();
  // On a cache line, as it must be to be written past the caches.
  std::vector<float> room(kCount + 16);
  float* y = room.data();
  while (reinterpret_cast<std::uintptr_t>(y) % 64 != 0) ++y;
  for (const ir::Program& program : {value_, ir::gradient_of(value_, {0})}) {
    run(program, x.data(), x.data() + 1, kCount - 1, y);
    for (const std::size_t begin : {std::size_t{0}, kCount / 2 + 3, kCount - 1 - kPiece}) {
      const std::vector<float> piece = run(program, x.data() + begin, x.data() + begin + 1, kPiece);
      for (std::size_t i = 0; i < kPiece; ++i) ASSERT_EQ(piece[i], y[begin + i]) << x[begin + i];
    }
  }
}

TEST_P(CurveTest, IsSoundFarOut) {
  const std::vector<float> x{-1e30F, -1e10F, -200, -90, -20, -0.0F, 0, 20, 90, 200, 1e10F, 1e30F};
  const std::vector<float> ones(x.size(), 1);
  const std::vector<float> y = run(value_, x.data(), nullptr, x.size());
  const std::vector<float> slope = run(ir::gradient_of(value_, {0}), x.data(), ones.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(y[i], x[i] > 0 ? x[i] : 0, 1e-6 * std::max(1.0F, x[i])) << x[i];
    if (x[i] == 0 || std::abs(x[i]) > 1e9F) continue;
    EXPECT_NEAR(slope[i], x[i] > 0 ? 1 : 0, 1e-6) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, CurveTest, ::testing::Values("gelu", "gelu_tanh", "silu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace penstock::kernels::native
