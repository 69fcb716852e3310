#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace penstock {

/// What the processor and its page tables deal in.
constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kSmallPage = 4 * kKiB;
constexpr std::int64_t kHugePage = 2 * kMiB;

}  // namespace penstock
