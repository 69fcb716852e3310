#pragma once

#include <cstdint>
#include <string>

#include "fit/fit.h"

namespace penstock::fit {

/// A fit as a plan file: all that is needed to train by it and all that an outsider needs to check it (sizes,
/// rounding, what may be swapped and written over, scratch, offsets). docs/plan.md tells the format.
std::string fit_to_json(const Steps& steps, const Fit& fit, const std::string& model, std::int64_t batch);

/// Reads a plan file back and proves it. `division`: what the process takes now; a budget of 0 is the file's.
/// Throws UserError that names `source` if it is no plan, one for another program, or one that the process
/// cannot hold within its budget.
Fit fit_from_json(const Steps& steps, const Division& division, const std::string& text,
                  const std::string& source);

}  // namespace penstock::fit
