#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <string>

namespace penstock::fit {

/// A memory budget, and what of it the pool does not get: code and kernels, loader, buffers, a margin.
/// Whoever fits a step measures these beforehand, because fitting itself looks at nothing but its arguments.
struct Division {
  std::int64_t budget_bytes = 0;
  std::map<std::string, std::int64_t> beside;  ///< bytes by tag

  std::int64_t beside_bytes() const {
    return std::accumulate(beside.begin(), beside.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& tag) { return sum + tag.second; });
  }
  /// 0 where nothing is set aside.
  std::int64_t beside_for(const std::string& tag) const {
    const auto found = beside.find(tag);
    return found == beside.end() ? 0 : found->second;
  }
  std::int64_t pool_bytes() const { return budget_bytes - beside_bytes(); }
};

}  // namespace penstock::fit
