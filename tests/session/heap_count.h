#pragma once

#include <cstdint>

namespace penstock::testing {

/// Bytes that `new` has given out and not got back, in this test program.
std::int64_t heap_bytes();
/// The most since the last call.
std::int64_t heap_peak_bytes();

}  // namespace penstock::testing
