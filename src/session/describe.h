#pragma once

#include <cstdint>
#include <string>

#include "fit/fit.h"
#include "penstock/session.h"

namespace penstock::session {

/// What a fit promises. `in_memory_seconds`: of a step that keeps everything; 0: not known.
Forecast describe(const fit::Fit& fit, BudgetScope scope, const std::string& profile_source,
                  double in_memory_seconds = 0);

}  // namespace penstock::session
