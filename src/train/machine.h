#pragma once

#include <string>

namespace penstock::training {

/// What this program runs on, in one line: processor, cores, memory, kernel. What cannot be found out is left
/// out.
std::string machine_text();

}  // namespace penstock::training
