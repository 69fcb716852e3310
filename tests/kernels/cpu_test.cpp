#include <gtest/gtest.h>

#include "kernels/kernel.h"
#include "kernels/op_cases.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

constexpr double kTolerance = 2e-5;

class CpuCaseTest : public ::testing::TestWithParam<OpCase> {
 protected:
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend();
  std::vector<CaseOutput> expected_ = run_case(*kernels::make_reference_backend(), GetParam());
};

TEST_P(CpuCaseTest, AgreesWithTheReference) {
  EXPECT_EQ(difference(run_case(*backend_, GetParam()), expected_, kTolerance), "");
}

TEST_P(CpuCaseTest, AgreesInPlace) {
  EXPECT_EQ(difference(run_case(*backend_, GetParam(), {.in_place = true}), expected_, kTolerance), "");
}

TEST_P(CpuCaseTest, EveryVariantAgrees) {
  for (int variant = 0; variant < 3; ++variant) {
    EXPECT_EQ(difference(run_case(*backend_, GetParam(), {.variant = variant}), expected_, kTolerance), "")
        << "variant " << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuCaseTest, ::testing::ValuesIn(op_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::testing
