#pragma once

#include <cstdint>
#include <span>

#include "base/long_vector.h"

namespace penstock {

/// One stay of a slot in memory: from instruction `first` to instruction `last`, both included.
/// last < first: the stay crosses the end of the step, [first, end] and [0, last] of the next.
struct PackInterval {
  int slot = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t size_bytes = 0;
};

struct Packing {
  /// One offset for each slot, the same at every stay; -1: a slot that never stays.
  LongVector<std::int64_t> offsets;
  std::int64_t arena_bytes = 0;
};

/// The arena is a whole number of these.
inline constexpr std::int64_t kPackedPage = 4096;

/// Bytes that an interval takes in the arena, and its alignment: 4 KiB pages from 4 KiB on, else 64 bytes.
std::int64_t packed_bytes(std::int64_t size_bytes);
std::int64_t packed_alignment(std::int64_t size_bytes);

/// Places each slot at an offset such that no two that live at the same time overlap: largest first, each
/// at the lowest offset that is free. `fixed`, by slot and not for all: those that have an offset already
/// (others: -1). Deterministic and pure.
Packing pack(std::span<const PackInterval> intervals, int slot_count,
             std::span<const std::int64_t> fixed = {});

}  // namespace penstock
