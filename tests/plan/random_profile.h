#pragma once

#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/random_step.h"

namespace penstock::plan {

/// Times of ops from 10 to 1000 microseconds, a tier of about the given bandwidth in bytes per second.
inline Profile random_profile(const Problem& problem, std::uint64_t seed, double bandwidth) {
  Dice dice(seed);
  Profile profile;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    profile.op_seconds.push_back({1e-5 * static_cast<double>(dice.between(1, 100))});
  }
  profile.tier = {bandwidth, 0.8 * bandwidth, 0.5 * bandwidth, 0.4 * bandwidth, 1e-6, seed % 2 == 0};
  return profile;
}

}  // namespace penstock::plan
