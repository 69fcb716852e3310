#pragma once

#include <cstdint>

#include "plan/profile.h"

namespace penstock::measure {

/// What it costs to give memory to a slot of a virtual pool of three quarters of `work_bytes`, and to take it
/// back. The pool is gone afterwards.
void measure_mapping(std::int64_t work_bytes, plan::HostProfile& profile);

}  // namespace penstock::measure
