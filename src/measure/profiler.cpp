#include "measure/profiler.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/median.h"
#include "measure/placed_op.h"
#include "measure/tier_meter.h"

namespace penstock::measure {
namespace {

/// What a direction of the tier is measured with, unless it is so slow that less must do.
constexpr std::int64_t kTierBytes = 128 * kMiB;
constexpr double kTierSeconds = 0.25;
/// A kernel that takes longer needs no repetitions.
constexpr double kLongSeconds = 0.1;
constexpr std::int64_t kLargestExtent = 4 * kMiB;

}  // namespace

Profiler::Profiler(std::int64_t work_bytes)
    : memory_(std::max<std::int64_t>(work_bytes, kMeteredExtents * 16 * kPlacedAlignment),
              AddressRange::Access::read_write) {
  memory_.populate();
}

std::int64_t Profiler::work_bytes(const lower::Executable& step) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
    std::int64_t scratch_bytes = step.scratch_bytes[i];
    if (!step.variants.empty()) {
      const auto& variants = step.variant_scratch_bytes[i];
      scratch_bytes = *std::max_element(variants.begin(), variants.end());
    }
    most = std::max(most, placed_bytes(step, static_cast<ir::OpId>(i), scratch_bytes));
  }
  return most;
}

double Profiler::measure(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel) {
  PlacedOp placed(step, op, kernel, {memory_.data(), static_cast<std::size_t>(memory_.size_bytes())});
  // The first run is a rehearsal, unless it is so long that what it warms up does not matter.
  const double first = placed.run();
  if (first > kLongSeconds) return std::min(first, placed.run());
  std::vector<double> seconds;
  for (int i = 0; i < 3; ++i) seconds.push_back(placed.run());
  measured_.push_back({&step, op, &kernel, median(seconds)});
  return measured_.back().seconds;
}

plan::OpSeconds Profiler::op_seconds(const lower::Executable& step) {
  constexpr double kCopyBytesPerSecond = 4e9;
  plan::OpSeconds seconds;
  for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
    const ir::Op& op = step.graph.ops[i];
    if (ir::has_side_effects(op.kind)) {
      double bytes = 0;
      if (op.kind == ir::OpKind::output)
        bytes = static_cast<double>(step.graph.tensor(op.inputs[0]).size_bytes());
      for (const ir::TensorId t : op.outputs) {
        const bool in_place =
            !op.inputs.empty() && step.graph.tensor(t).storage == step.graph.tensor(op.inputs[0]).storage;
        if (!in_place) bytes += static_cast<double>(step.graph.tensor(t).size_bytes());
      }
      seconds.push_back({bytes / kCopyBytesPerSecond});
      continue;
    }
    const std::size_t variants = step.variants.empty() ? 1 : step.variants[i].size();
    std::vector<double> by_variant;
    for (std::size_t variant = 0; variant < variants; ++variant) {
      const kernels::Kernel& kernel =
          step.kernel(static_cast<ir::OpId>(i), static_cast<std::int32_t>(variant));
      const auto [known, is_new] = known_.try_emplace(&kernel, 0);
      if (is_new) known->second = measure(step, static_cast<ir::OpId>(i), kernel);
      by_variant.push_back(known->second);
    }
    seconds.push_back(by_variant);
  }
  return seconds;
}

void Profiler::tier(const MakeTier& make, plan::Profile& profile) {
  const std::int64_t extent =
      std::min(kLargestExtent, memory_.size_bytes() / kMeteredExtents / kPlacedAlignment * kPlacedAlignment);
  LongVector<std::int64_t> extents(kMeteredExtents, extent);
  extents.push_back(kPlacedAlignment);
  const std::unique_ptr<Tier> tier = make(extents);
  TierMeter meter(*tier, memory_.data());
  meter.fill();
  // A first short round says how many bytes make a good measurement.
  const double rough = meter.rate(true, true, 2 * extent);
  const std::int64_t bytes = std::min(kTierBytes, static_cast<std::int64_t>(rough * kTierSeconds));
  plan::TierProfile& rates = profile.tier;
  rates.write_bandwidth = meter.rate(false, true, bytes);
  rates.read_bandwidth = meter.rate(true, false, bytes);
  const double together = meter.rate(true, true, bytes);
  rates.write_bandwidth_together = std::min(together, rates.write_bandwidth);
  rates.read_bandwidth_together = std::min(together, rates.read_bandwidth);
  meter.latency(profile);
  side_by_side(*tier, profile);
}

std::vector<Profiler::Measured> Profiler::sample(int count, std::int64_t memory_bytes) const {
  std::vector<Measured> fitting;
  double total = 0;
  for (const Measured& op : measured_) {
    if (placed_bytes(*op.step, op.op, op.kernel->scratch_bytes()) > memory_bytes) continue;
    fitting.push_back(op);
    total += op.seconds;
  }
  std::vector<Measured> chosen;
  double sum = 0;
  for (const Measured& op : fitting) {
    sum += op.seconds;
    if (sum >= total * (static_cast<double>(chosen.size()) + 0.5) / count) chosen.push_back(op);
  }
  return chosen;
}

void Profiler::side_by_side(Tier& tier, plan::Profile& profile) {
  constexpr int kRead = 0, kWritten = 1, kOps = 6, kParts = 4;
  constexpr std::size_t kQueued = 8;
  constexpr double kSecondsOfOp = 0.03, kSteadyBytes = 64e6;
  const auto extent = static_cast<std::size_t>(tier.extent_bytes(kRead));
  std::byte* buffers = memory_.data();
  const std::span<std::byte> work(buffers + 2 * extent,
                                  static_cast<std::size_t>(memory_.size_bytes()) - 2 * extent);
  std::deque<Ticket> queue;
  const auto moved_bytes = [&tier] { return tier.stats().read_bytes + tier.stats().written_bytes; };
  const auto keep_moving = [&] {
    while (!queue.empty() && tier.done(queue.front())) {
      tier.wait(queue.front());
      queue.pop_front();
    }
    while (queue.size() < kQueued) {
      queue.push_back(tier.read(kRead, buffers));
      queue.push_back(tier.write(kWritten, buffers + extent));
    }
  };
  // In parts, and the fastest part counts, alone and beside transfers: the machine's speed may change
  // between.
  double slower_seconds = 0, bytes = 0;
  // Transfers that never ran out while ops ran: those of ops that are shorter than what is queued.
  double steady_seconds = 0, steady_bytes = 0;
  plan::TierProfile& rates = profile.tier;
  const double both_bandwidths = rates.read_bandwidth_together + rates.write_bandwidth_together;
  const double queued_seconds = static_cast<double>(kQueued * extent) / both_bandwidths;
  for (const Measured& op : sample(kOps, static_cast<std::int64_t>(work.size()))) {
    PlacedOp placed(*op.step, op.op, *op.kernel, work);
    placed.run();
    const int runs = static_cast<int>(std::clamp(kSecondsOfOp / kParts / (op.seconds + 1e-6), 1.0, 50.0));
    const auto fastest_part = [&](const auto& before_each) {
      double fastest = std::numeric_limits<double>::infinity();
      for (int part = 0; part < kParts; ++part) {
        double seconds = 0;
        for (int i = 0; i < runs; ++i) {
          before_each();
          seconds += placed.run();
        }
        fastest = std::min(fastest, seconds);
      }
      return fastest;
    };
    const double before = fastest_part([] {});
    const std::int64_t before_bytes = moved_bytes();
    const double begin = clock_seconds();
    const double beside = fastest_part(keep_moving);
    const auto moved = static_cast<double>(moved_bytes() - before_bytes);
    bytes += moved / kParts;
    if (op.seconds < queued_seconds / 2) {
      steady_seconds += clock_seconds() - begin;
      steady_bytes += moved;
    }
    for (const Ticket ticket : queue) tier.wait(ticket);
    queue.clear();
    const double after = fastest_part([] {});
    slower_seconds += std::max(0.0, beside - std::min(before, after));
  }
  profile.host.transfer_seconds_per_byte = bytes > 0 ? slower_seconds / bytes : 0;
  // In a step there are always ops beside transfers. They do not slow down a tier so slow that what is queued
  // outlasts the measurement, which would say nothing of it.
  if (steady_bytes < kSteadyBytes || queued_seconds > kSecondsOfOp / 4) return;
  const double share = std::min(1.0, steady_bytes / steady_seconds / both_bandwidths);
  for (double* rate : {&rates.read_bandwidth, &rates.write_bandwidth, &rates.read_bandwidth_together,
                       &rates.write_bandwidth_together}) {
    *rate *= share;
  }
}

}  // namespace penstock::measure
