#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/kernel.h"
#include "kernels/op_cases.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

/// Ops of transformers give the same bits with any number of threads.
class ThreadsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  std::vector<CaseOutput> run_with(int threads) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    auto outputs = run_case(*kernels::make_cpu_backend(), GetParam());
    omp_set_num_threads(before);
    return outputs;
  }
};

TEST_P(ThreadsTest, DoNotChangeTheResult) {
  EXPECT_EQ(difference(run_with(3), run_with(1), 0), "");
}

INSTANTIATE_TEST_SUITE_P(Text, ThreadsTest, ::testing::ValuesIn(text_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::testing
