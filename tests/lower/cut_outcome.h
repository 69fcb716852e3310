#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lower/lower.h"
#include "lower/step_runner.h"

// Steps that are cut, beside the same steps whole.
namespace penstock::testing {

inline ir::Graph step_to_cut(const ir::Graph& network) {
  return lower::repeat_cheap(
      training_step(lower::fuse(lower::for_training(network)), {.momentum = 0.9F, .weight_decay = 1e-3F}), 0);
}

struct CutOutcome {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> state;
};

inline CutOutcome run_cut_steps(kernels::Backend& backend, const ir::Graph& step) {
  ir::verify(step);
  const lower::Executable executable = lower::lower(step, backend);
  StepRunner runner(backend, executable);
  CutOutcome outcome;
  for (int i = 0; i < 3; ++i) outcome.losses.push_back(runner.run());
  outcome.state = runner.state();
  return outcome;
}

/// The largest difference of a loss or a tensor of state, as a share of the largest value there.
inline double outcome_difference(const CutOutcome& have, const CutOutcome& want) {
  EXPECT_EQ(have.state.size(), want.state.size());
  double worst = 0;
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(have.losses[i] / want.losses[i]) - 1));
  for (const auto& [name, values] : want.state) {
    const auto& other = have.state.at(name);
    EXPECT_EQ(other.size(), values.size()) << name;
    double largest = 1e-3, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      apart = std::max(apart, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
    worst = std::max(worst, apart / largest);
  }
  return worst;
}

}  // namespace penstock::testing
