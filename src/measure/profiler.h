#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "kernels/kernel.h"
#include "lower/lower.h"
#include "memory/address_range.h"
#include "plan/profile.h"
#include "tier/tier.h"

namespace penstock::measure {

/// Measures kernels and tiers before the first step, in memory of its own that is gone with it. One thread
/// calls it; while it measures, nobody else should use the cores or the disk.
class Profiler {
 public:
  /// `work_bytes`: what the neediest op of the steps that will be measured takes, or more.
  explicit Profiler(std::int64_t work_bytes);

  /// What the neediest op of a step takes: its tensors and its scratch.
  static std::int64_t work_bytes(const lower::Executable& step);

  /// Seconds of each op's kernels, by op and variant: the median of a few runs on memory that was touched
  /// before, with caches as in a step. Ops with the same kernel are measured once. Ops that take a batch or
  /// talk to other ranks get what copying their outputs takes.
  plan::OpSeconds op_seconds(const lower::Executable& step);

  /// Makes a tier for extents of the given sizes.
  using MakeTier = std::function<std::unique_ptr<Tier>(const LongVector<std::int64_t>& extent_bytes)>;
  /// Bandwidths each way alone and together, and latency, of a tier made for the purpose; and what it costs
  /// the calling thread to start a transfer on it, and ops that were measured before to run beside it. The
  /// steps they are of must still be there.
  void tier(const MakeTier& make, plan::Profile& profile);

 private:
  /// An op that was measured, short enough to be run again and again.
  struct Measured {
    const lower::Executable* step = nullptr;
    ir::OpId op = ir::kNone;
    const kernels::Kernel* kernel = nullptr;
    double seconds = 0;
  };

  double measure(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel);
  /// About `count` of those that fit the memory, such that all together are like the step.
  std::vector<Measured> sample(int count, std::int64_t memory_bytes) const;
  /// Ops and transfers beside each other: what ops lose, and how fast transfers are then.
  void side_by_side(Tier& tier, plan::Profile& profile);

  AddressRange memory_;
  std::vector<Measured> measured_;
  std::unordered_map<const kernels::Kernel*, double> known_;
};

}  // namespace penstock::measure
