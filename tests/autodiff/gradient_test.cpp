#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autodiff/rules.h"
#include "kernels/case_graph.h"
#include "kernels/kernel.h"
#include "kernels/op_cases.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

using ir::TensorId;

const std::vector<float>& values_of(const std::vector<CaseOutput>& outputs, const std::string& tensor) {
  for (const CaseOutput& output : outputs) {
    if (output.tensor == tensor) return output.values;
  }
  throw std::runtime_error("no output " + tensor);
}

std::vector<OpCase> cases_with_gradients() {
  std::vector<OpCase> cases;
  for (const OpCase& op_case : op_cases()) {
    const bool has_gradient = std::any_of(op_case.inputs.begin(), op_case.inputs.end(),
                                          [](const CaseInput& input) { return input.differentiable; });
    if (autodiff::rule_of(op_case.kind) != nullptr && has_gradient && op_case.finite_differences)
      cases.push_back(op_case);
  }
  return cases;
}

class GradientTest : public ::testing::TestWithParam<OpCase> {
 protected:
  /// The outputs projected on the seeds (the loss itself for a cross-entropy).
  double loss(const CaseGraph& forward) {
    const auto outputs = run_graph(*backend_, forward);
    if (full_.seeds.empty()) return values_of(outputs, "output0")[0];
    double sum = 0;
    for (const autodiff::Seed& seed : full_.seeds) {
      const auto& y = values_of(outputs, full_.graph.tensor(seed.tensor).name);
      const auto& dy = full_.values.at(seed.gradient);
      for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * dy[i];
    }
    return sum;
  }

  double slope(CaseGraph& forward, TensorId input, std::size_t element) {
    float& x = forward.values.at(input)[element];
    const float old = x;
    x = old + kEpsilon;
    const double above = loss(forward);
    const double step_above = static_cast<double>(x) - old;
    x = old - kEpsilon;
    const double below = loss(forward);
    const double step = step_above + (static_cast<double>(old) - x);
    x = old;
    return (above - below) / step;
  }

  static constexpr float kEpsilon = 5e-3F;
  static constexpr std::size_t kElements = 24;  ///< per input: enough to meet every axis and border
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_reference_backend();
  CaseGraph full_ = make_case_graph(GetParam(), true);
};

TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const auto outputs = run_graph(*backend_, full_);
  CaseGraph forward = make_case_graph(GetParam(), false);
  int checked = 0;
  for (std::size_t i = 0; i < full_.inputs.size(); ++i) {
    const CaseInput& input = GetParam().inputs[i];
    EXPECT_EQ(full_.gradients.contains(full_.inputs[i]), input.differentiable) << "input " << i;
  }
  for (const auto& [input, gradient] : full_.gradients) {
    // An addition hands the seed on as it is.
    const auto seed = full_.values.find(gradient);
    const std::vector<float>& analytic =
        seed != full_.values.end() ? seed->second : values_of(outputs, full_.graph.tensor(gradient).name);
    double largest = 0;
    for (const float value : analytic) largest = std::max<double>(largest, std::fabs(value));
    ASSERT_GT(largest, 0) << full_.graph.tensor(input).name.text();
    const std::size_t stride = std::max<std::size_t>(1, analytic.size() / kElements);
    for (std::size_t i = 0; i < analytic.size(); i += stride) {
      EXPECT_NEAR(slope(forward, input, i), analytic[i], 2e-3 * largest)
          << full_.graph.tensor(input).name.text() << " element " << i;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(All, GradientTest, ::testing::ValuesIn(cases_with_gradients()),
                         [](const auto& info) { return info.param.name; });

TEST(GradientRules, EveryRuleIsChecked) {
  std::set<ir::OpKind> covered;
  for (const OpCase& op_case : cases_with_gradients()) covered.insert(op_case.kind);
  for (int i = 0; i < ir::kOpKinds; ++i) {
    const auto kind = static_cast<ir::OpKind>(i);
    EXPECT_EQ(covered.contains(kind), autodiff::rule_of(kind) != nullptr) << ir::op_name(kind);
  }
}

}  // namespace
}  // namespace penstock::testing
