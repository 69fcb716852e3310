#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/problem.h"

namespace penstock::report {

/// What a plan does with a storage that is needed again long after it was made.
enum class Fate : std::uint8_t {
  brief,       ///< it is not: a gradient, or an activation that only forward uses
  kept,        ///< stays in memory from its first use to its last
  swapped,     ///< written to the tier, or read from it
  recomputed,  ///< given up and made again
};

/// By storage.
std::vector<Fate> fates(const plan::Problem& problem, const plan::Plan& plan);

/// Bytes of one module's storages that outlive their making: state, and what backward needs of forward.
struct LayerUse {
  std::string name;
  std::int64_t kept_bytes = 0;
  std::int64_t swapped_bytes = 0;
  std::int64_t recomputed_bytes = 0;

  std::int64_t total_bytes() const { return kept_bytes + swapped_bytes + recomputed_bytes; }
};

/// "layer1.0.conv1.weight.grad" and "layer1.0.conv1" are of module "layer1.0.conv1".
std::string module_of(const std::string& tensor_name);

/// In order of execution, grouped by as many parts of the module's name as give no more than `max_rows`.
std::vector<LayerUse> layer_uses(const plan::Problem& problem, const plan::Plan& plan,
                                 std::size_t max_rows = 40);

}  // namespace penstock::report
