#pragma once

#include <span>
#include <string>

#include "report/step_view.h"

namespace penstock::report {

/// The steps as a trace that Perfetto and chrome://tracing open: one process, a thread for each lane,
/// counters for the pool's memory and for what was read ahead. Ops carry their kind, transfers their bytes;
/// stalls and repeated ops have names and colours of their own.
std::string trace_json(std::span<const StepView> steps, const std::string& title);

}  // namespace penstock::report
