#include "kernels/native/product.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/native/simd/text_table.h"

namespace penstock::kernels::native {
namespace {

std::vector<float> normal(std::int64_t count, std::uint32_t stream) {
  std::vector<float> values(static_cast<std::size_t>(count));
  CounterRandom(3, RandomPurpose::synthetic, 0, stream).fill_normal(values.data(), count, 1);
  return values;
}

struct Sizes {
  std::int64_t m, n, k;
};

class ProductTest : public ::testing::TestWithParam<Sizes> {
 protected:
  std::vector<float> run(bool a_turned, bool b_turned, bool everything) {
    const auto [m, n, k] = GetParam();
    std::vector<float> scratch(static_cast<std::size_t>(text_simd().product_floats(m, n, k)));
    std::vector<float> c = c_;
    Product product;
    product.m = m, product.n = n, product.k = k;
    product.a = a_turned ? MatrixView{a_.data(), 1, m} : MatrixView{a_.data(), k, 1};
    product.b = b_turned ? MatrixView{b_.data(), 1, k} : MatrixView{b_.data(), n, 1};
    product.c = c.data();
    product.c_row = n + 3;
    product.scratch = scratch.data();
    if (everything) {
      product.bias = bias_.data();
      product.scale = 0.5F;
      product.add = product.relu = true;
    }
    text_simd().product(product);
    return c;
  }

  double expected(std::int64_t i, std::int64_t j, bool a_turned, bool b_turned, bool everything) const {
    const auto [m, n, k] = GetParam();
    double sum = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      const float a = a_[static_cast<std::size_t>(a_turned ? t * m + i : i * k + t)];
      const float b = b_[static_cast<std::size_t>(b_turned ? j * k + t : t * n + j)];
      sum += static_cast<double>(a) * b;
    }
    if (!everything) return sum;
    const double old = c_[static_cast<std::size_t>(i * (n + 3) + j)];
    return std::max(0.0, 0.5 * sum + bias_[static_cast<std::size_t>(j)] + old);
  }

  const std::vector<float> a_ = normal(GetParam().m * GetParam().k, 1);
  const std::vector<float> b_ = normal(GetParam().n * GetParam().k, 2);
  const std::vector<float> c_ = normal(GetParam().m * (GetParam().n + 3), 3);
  const std::vector<float> bias_ = normal(GetParam().n, 4);
};

TEST_P(ProductTest, IsTheProduct) {
  const auto [m, n, k] = GetParam();
  for (const bool a_turned : {false, true}) {
    for (const bool b_turned : {false, true}) {
      for (const bool everything : {false, true}) {
        const std::vector<float> c = run(a_turned, b_turned, everything);
        double worst = 0;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            const double apart =
                c[static_cast<std::size_t>(i * (n + 3) + j)] - expected(i, j, a_turned, b_turned, everything);
            worst = std::max(worst, std::fabs(apart));
          }
          for (std::int64_t j = n; j < n + 3; ++j) {
            const auto at = static_cast<std::size_t>(i * (n + 3) + j);
            ASSERT_EQ(c[at], c_[at]) << "wrote beside the matrix";
          }
        }
        EXPECT_LT(worst, 2e-6 * std::sqrt(static_cast<double>(k)) * 4) << a_turned << b_turned << everything;
      }
    }
  }
}

TEST_P(ProductTest, DoesNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<float> one = run(false, true, true);
  omp_set_num_threads(3);
  const std::vector<float> three = run(false, true, true);
  omp_set_num_threads(threads);
  EXPECT_EQ(one, three);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProductTest,
                         ::testing::Values(Sizes{1, 1, 1}, Sizes{6, 16, 8}, Sizes{7, 17, 9},
                                           Sizes{5, 40, 321}, Sizes{100, 33, 7}, Sizes{193, 130, 65},
                                           Sizes{13, 800, 33}, Sizes{1600, 18, 10}, Sizes{9, 3100, 5}),
                         [](const auto& info) {
                           return std::to_string(info.param.m) + "x" + std::to_string(info.param.n) + "x" +
                                  std::to_string(info.param.k);
                         });

}  // namespace
}  // namespace penstock::kernels::native
