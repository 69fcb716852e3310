#pragma once

#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

/// A part of a row whose vectors all belong to the same channels: `count` vectors `stride` elements apart
/// from `offset` on (within the row), then `tail` elements more. In plain order a vector holds eight
/// positions of one channel, otherwise eight channels of one position.
struct Run {
  std::int64_t offset = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;
  std::int64_t tail = 0;
  std::int64_t channel = 0;  ///< the first of the vector's channels
  std::int64_t lane = 0;     ///< its place within the block
};

/// The run of the next eight channels.
[[gnu::always_inline]] static inline Run beside(const Run& run) {
  return {run.offset + kLanes, run.stride, run.count, run.tail, run.channel + kLanes, run.lane + kLanes};
}

/// Calls f(run) for the runs that make up a row; where `vectors` is 2 and channels lie side by side, for
/// every other one: f() takes the run beside it too.
template <typename F>
[[gnu::always_inline]] static inline void for_each_run(const ChannelView& view, std::int64_t row, const F& f,
                                                       std::int64_t vectors = 1) {
  const std::int64_t first = row % view.blocks * view.block;
  if (view.block == 1) {
    f(Run{0, kLanes, view.positions / kLanes, view.positions % kLanes, first, 0});
    return;
  }
  // Wide blocks (channels-last) go in tiles that stay in the first-level cache.
  const std::int64_t tile = view.block == kLanes ? view.positions : 4096 / view.block + 1;
  for (std::int64_t begin = 0; begin < view.positions; begin += tile) {
    const std::int64_t count = view.positions - begin < tile ? view.positions - begin : tile;
    for (std::int64_t lane = 0; lane < view.block; lane += vectors * kLanes) {
      f(Run{begin * view.block + lane, view.block, count, 0, first + lane, lane});
    }
  }
}

/// A per-channel value for the lanes of a run: zero for channels that are padding.
[[gnu::always_inline]] static inline F8 lanes_of(const ChannelView& view, const Run& run,
                                                 const float* values) {
  if (view.block == 1) return broadcast(values[run.channel]);
  const std::int64_t left = view.channels - run.channel;
  if (left >= kLanes) return load(values + run.channel);
  return load_part(values + run.channel, left > 0 ? left : 0);
}

/// Zero beyond the first `count` lanes.
[[gnu::always_inline]] static inline F8 first_lanes(F8 v, std::int64_t count) {
  for (std::int64_t i = count; i < kLanes; ++i) v[i] = 0;
  return v;
}

/// Two sums per lane, added up in float32 over short stretches and in float64 over those.
struct Sums {
  F8 a{};
  F8 b{};
};
inline constexpr std::int64_t kStretch = 512;

/// Adds the run's terms to partial sums `a` and `b` (`block` long each). term(offset, lanes) gives a vector's
/// Sums.
template <typename Term>
[[gnu::always_inline]] static inline void add_terms(const ChannelView& view, const Run& run, double* a,
                                                    double* b, const Term& term) {
  const auto flush = [&](const Sums& sums) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      const std::int64_t at = view.block == 1 ? 0 : run.lane + i;
      a[at] += static_cast<double>(sums.a[i]);
      b[at] += static_cast<double>(sums.b[i]);
    }
  };
  for (std::int64_t begin = 0; begin < run.count; begin += kStretch) {
    const std::int64_t end = begin + kStretch < run.count ? begin + kStretch : run.count;
    Sums even;
    Sums odd;
    const std::int64_t pairs = begin + (end - begin) / 2 * 2;
    std::int64_t offset = run.offset + begin * run.stride;
    for (std::int64_t i = begin; i < pairs; i += 2, offset += 2 * run.stride) {
      const Sums t = term(offset, kLanes);
      even.a += t.a;
      even.b += t.b;
      const Sums u = term(offset + run.stride, kLanes);
      odd.a += u.a;
      odd.b += u.b;
    }
    if (pairs < end) {
      const Sums t = term(offset, kLanes);
      even.a += t.a;
      even.b += t.b;
    }
    flush({even.a + odd.a, even.b + odd.b});
  }
  if (run.tail > 0) {
    const Sums t = term(run.offset + run.count * run.stride, run.tail);
    flush({first_lanes(t.a, run.tail), first_lanes(t.b, run.tail)});
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
