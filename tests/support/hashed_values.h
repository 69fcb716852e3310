#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace penstock::testing {

/// Pseudo-random uint32 values for the elements of tensor `name`: the rule of tests/golden/make_golden.py.
std::vector<std::uint32_t> hashed(const std::string& name, std::int64_t count);

/// The same as floats in [-1, 1).
std::vector<float> hashed_uniform(const std::string& name, std::int64_t count);

/// The first value of a model's parameter or statistic in the golden steps: norms' factors are near
/// `norm_factor`, their terms and all biases near `norm_term`.
std::vector<float> hashed_state(const ir::Tensor& tensor, float norm_factor, float norm_term);

}  // namespace penstock::testing
