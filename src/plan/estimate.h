#pragma once

#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// What a machine is thought to do, where nothing was measured.
struct MachineEstimate {
  double flops_per_second = 1.5e11;  ///< of convolutions and matrix products, all cores
  double bytes_per_second = 1e10;    ///< of ops that only pass over their tensors
  TierProfile tier;
  HostProfile host{1.5e-5, 5e-12, 1e-5, 5e-11};
};

/// A profile from shapes alone; Profile::measured is false.
Profile estimate_profile(const Problem& problem, const MachineEstimate& machine = {});

}  // namespace penstock::plan
