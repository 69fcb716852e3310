#pragma once

#include <string>

#include "report/run_report.h"

namespace penstock::report {

/// Memory over one step against the budget, and beneath it, on the same axis of time, what each lane did.
std::string step_figure(const RunReport& run);

}  // namespace penstock::report
