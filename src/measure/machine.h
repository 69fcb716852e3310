#pragma once

#include <string>

namespace penstock::measure {

/// The processor's own name for itself; empty where it cannot be found out.
std::string processor_name();

/// What this program runs on, in one line: processor, cores, memory, kernel. What cannot be found out is left
/// out.
std::string machine_text();

}  // namespace penstock::measure
