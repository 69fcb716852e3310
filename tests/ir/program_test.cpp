#include "ir/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "ir/functions.h"

namespace penstock::ir {
namespace {

/// The outputs of a program for these inputs, in double precision.
std::vector<double> run(const Program& program, std::vector<double> values) {
  for (const Step& step : program.steps) {
    const auto of = [&](std::int32_t v) { return v < 0 ? 0 : values[static_cast<std::size_t>(v)]; };
    values.push_back(step.function == Function::constant
                         ? step.value
                         : evaluate(step.function, of(step.a), of(step.b), of(step.c)));
  }
  std::vector<double> outputs;
  for (const std::int32_t output : program.outputs)
    outputs.push_back(values[static_cast<std::size_t>(output)]);
  return outputs;
}

TEST(ProgramWriter, WritesEqualStepsOnce) {
  ProgramWriter w(1);
  const auto a = w.apply(Function::sigmoid, 0);
  EXPECT_EQ(w.apply(Function::sigmoid, 0), a);
  EXPECT_EQ(w.constant(2), w.constant(2));
  EXPECT_NE(w.constant(0.0F), w.constant(-0.0F));
}

TEST(ProgramWriter, LeavesOutWhatChangesNothing) {
  ProgramWriter w(2);
  EXPECT_EQ(w.multiply(0, 1.0F), 0);
  EXPECT_EQ(w.add(w.constant(0), 1), 1);
  EXPECT_EQ(w.neg(w.neg(0)), 0);
  EXPECT_TRUE(w.is(w.multiply(0, 0.0F), 0));
  EXPECT_TRUE(w.is(w.add(w.constant(2), w.constant(3)), 5));
  EXPECT_EQ(w.select(0, 1, 1), 1);
}

TEST(ProgramWriter, FinishKeepsOnlyWhatIsNeeded) {
  ProgramWriter w(2);
  w.apply(Function::exp, 0);
  const auto y = w.multiply(1, w.apply(Function::tanh, 0));
  const Program program = w.finish({y});
  EXPECT_EQ(program_text(program), "2 inputs; tanh 0; multiply 1 2 -> 3");
}

TEST(ProgramWriter, RefusesAValueThatIsNotThere) {
  ProgramWriter w(1);
  EXPECT_THROW(w.apply(Function::exp, 5), InternalError);
}

TEST(GradientOf, IsZeroBehindASteplikeFunction) {
  const Program gradient = gradient_of(named_function("floor"), {0});
  EXPECT_TRUE(is_zero(gradient, 0));
}

TEST(GradientOf, SharesWhatForwardAndBackwardBothNeed) {
  const Program gradient = gradient_of(named_function("silu"), {0});
  int sigmoids = 0;
  for (const Step& step : gradient.steps) sigmoids += step.function == Function::sigmoid ? 1 : 0;
  EXPECT_EQ(sigmoids, 1);
}

TEST(GradientOf, AClippedValueKeepsItsGradientAtTheBound) {
  const Program gradient = gradient_of(named_function("clip", {-1, 1}), {0});
  EXPECT_EQ(run(gradient, {1, 3})[0], 3);
  EXPECT_EQ(run(gradient, {-1, 3})[0], 3);
  EXPECT_EQ(run(gradient, {1.5, 3})[0], 0);
}

TEST(GradientOf, EqualOperandsOfMaximumShare) {
  const Program gradient = gradient_of(named_function("maximum"), {0, 1});
  EXPECT_EQ(run(gradient, {2, 2, 3}), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(run(gradient, {2, 1, 3}), (std::vector<double>{3, 0}));
}

TEST(ValuesHeld, CountsInputsConstantsAndWhatIsAlive) {
  // x, its sigmoid, their product, and a place more for the output.
  EXPECT_EQ(values_held(named_function("silu")), 4);
  EXPECT_GT(values_held(gradient_of(named_function("mish"), {0})), values_held(named_function("mish")));
}

TEST(NamedFunction, SaysWhatIsWrong) {
  EXPECT_THROW(named_function("nonsense"), UserError);
  EXPECT_THROW(named_function("silu", {1}), UserError);
}

/// Lines of tests/golden/functions.txt: name, inputs, value and gradients, all made by PyTorch in float64.
TEST(NamedFunction, AgreesWithPyTorch) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/tests/golden/functions.txt");
  ASSERT_TRUE(file);
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t parameters = 0;
    words >> name >> parameters;
    std::vector<float> given(parameters);
    for (float& parameter : given) words >> parameter;
    const Program program = named_function(name, given);
    std::vector<double> values(static_cast<std::size_t>(program.inputs));
    std::vector<std::int32_t> all;
    for (std::size_t i = 0; i < values.size(); ++i) {
      words >> values[i];
      all.push_back(static_cast<std::int32_t>(i));
    }
    double expected = 0;
    words >> expected;
    ASSERT_TRUE(words) << line;
    EXPECT_NEAR(run(program, values)[0], expected, 1e-6 * (1 + std::fabs(expected))) << line;
    std::vector<double> with_seed = values;
    with_seed.push_back(1);
    const std::vector<double> gradients = run(gradient_of(program, all), with_seed);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      words >> expected;
      ASSERT_TRUE(words) << line;
      EXPECT_NEAR(gradients[i], expected, 1e-6 * (1 + std::fabs(expected))) << line << " input " << i;
    }
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace penstock::ir
