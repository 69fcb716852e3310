#pragma once

#include "base/long_vector.h"
#include "plan/droppable.h"
#include "plan/trials.h"

namespace penstock::plan {

/// Lets swapping and recomputing compete for each gap as prices settle, and ways to pass with each other: the
/// slower half is given up time and again. Returns the fastest.
Trial race(Trials& trials, const LongVector<Droppable>& droppable, int rounds);

}  // namespace penstock::plan
