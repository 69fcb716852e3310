#include "run/profiler.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "base/median.h"
#include "memory/virtual_pool.h"
#include "run/residency.h"

namespace penstock::run {
namespace {

constexpr std::int64_t kAlignment = 4096;
/// What a direction of the tier is measured with, unless it is so slow that less must do.
constexpr std::int64_t kTierBytes = 128 * kMiB;
constexpr double kTierSeconds = 0.25;
constexpr int kTierExtents = 4;
/// A kernel that takes longer needs no repetitions.
constexpr double kLongSeconds = 0.1;
constexpr std::int64_t kLargestExtent = 4 * kMiB;

/// Storages of an op's tensors with their sizes, each once.
std::map<ir::StorageId, std::int64_t> storages_of(const ir::Graph& graph, const ir::Op& op) {
  std::map<ir::StorageId, std::int64_t> sizes;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId t : *list) {
      std::int64_t& bytes = sizes[graph.tensor(t).storage];
      bytes = std::max(bytes, graph.tensor(t).size_bytes());
    }
  }
  return sizes;
}

/// Bytes of an op's tensors and scratch, as they are placed.
std::int64_t placed_bytes(const lower::Executable& step, ir::OpId op, std::int64_t scratch_bytes) {
  std::int64_t bytes = round_up(scratch_bytes, kAlignment);
  for (const auto& [storage, size] : storages_of(step.graph, step.graph.op(op)))
    bytes += round_up(size, kAlignment);
  return bytes;
}

/// Puts memory out of all caches.
void flush(std::span<const std::byte> memory) {
#ifdef __SSE2__
  for (std::size_t i = 0; i < memory.size(); i += 64) _mm_clflush(memory.data() + i);
  _mm_mfence();
#else
  static_cast<void>(memory);
#endif
}

/// An op on memory that is not its own, to be run as if in a step: what was made long before it, parameters
/// and state come from memory, what was made just before it may be in a cache.
class PlacedOp {
 public:
  PlacedOp(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel,
           std::span<std::byte> memory)
      : kernel_(kernel), memory_(memory) {
    constexpr ir::OpId kLongBefore = 8;
    const ir::Op& node = step.graph.op(op);
    std::map<ir::StorageId, std::byte*> addresses;
    for (const auto& [storage, bytes] : storages_of(step.graph, node)) addresses[storage] = place(bytes);
    for (const ir::TensorId t : node.inputs) {
      const ir::Tensor& tensor = step.graph.tensor(t);
      const std::span<std::byte> data(addresses[tensor.storage],
                                      static_cast<std::size_t>(tensor.size_bytes()));
      // What an earlier kernel left behind may not be numbers, and as labels or indices it may be wrong.
      std::fill(data.begin(), data.end(), std::byte{0});
      inputs_.push_back(data.data());
      if (tensor.producer == ir::kNone || tensor.producer + kLongBefore < op) cold_.push_back(data);
    }
    for (const ir::TensorId t : node.outputs) outputs_.push_back(addresses[step.graph.tensor(t).storage]);
    args_.inputs = inputs_;
    args_.outputs = outputs_;
    args_.scratch = place(kernel.scratch_bytes());
    args_.step = &context_;
  }

  /// Seconds of one run.
  double run() {
    for (const std::span<std::byte> data : cold_) flush(data);
    const double begin = clock_seconds();
    kernel_.run(args_);
    return clock_seconds() - begin;
  }

 private:
  std::byte* place(std::int64_t size_bytes) {
    const auto bytes = static_cast<std::size_t>(round_up(size_bytes, kAlignment));
    require(bytes <= memory_.size(), "profiler: an op needs more memory than was said");
    std::byte* address = memory_.data();
    memory_ = memory_.subspan(bytes);
    return address;
  }

  const kernels::Kernel& kernel_;
  std::span<std::byte> memory_;  ///< not placed yet
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<std::span<std::byte>> cold_;
  kernels::StepContext context_;
  kernels::KernelArgs args_;
};

/// Moves extents to and fro. `first` and `count`: which extents.
class TierMeter {
 public:
  TierMeter(Tier& tier, std::byte* buffers) : tier_(tier), buffers_(buffers) {}

  /// Moves about `bytes` through each direction asked for, all extents of a direction at a time, and returns
  /// bytes per second of one direction.
  double rate(bool reads, bool writes, std::int64_t bytes) {
    const int half = kTierExtents / 2;
    const std::int64_t round_bytes = half * tier_.extent_bytes(0);
    const auto rounds = std::max<std::int64_t>(1, bytes / round_bytes);
    const double begin = clock_seconds();
    std::vector<Ticket> before;
    // One round is always queued behind the one that is under way, as in a step.
    for (std::int64_t round = 0; round < rounds; ++round) {
      std::vector<Ticket> tickets;
      for (int i = 0; i < half; ++i) {
        if (reads) tickets.push_back(tier_.read(i, buffer(i)));
        if (writes) tickets.push_back(tier_.write(half + i, buffer(half + i)));
      }
      for (const Ticket ticket : before) tier_.wait(ticket);
      before = std::move(tickets);
    }
    for (const Ticket ticket : before) tier_.wait(ticket);
    return static_cast<double>(rounds * round_bytes) / (clock_seconds() - begin);
  }

  void fill() {
    for (int i = 0; i < tier_.extent_count(); ++i) tier_.wait(tier_.write(i, buffer(i)));
  }

  /// Of a small request, for the tier and for the one who starts it.
  void latency(plan::Profile& profile) {
    std::vector<double> seconds, start_seconds;
    for (int i = 0; i < 9; ++i) {
      const double begin = clock_seconds();
      const Ticket ticket = tier_.read(kTierExtents, buffer(0));
      start_seconds.push_back(clock_seconds() - begin);
      tier_.wait(ticket);
      seconds.push_back(clock_seconds() - begin);
    }
    profile.tier.latency_seconds = median(seconds);
    profile.host.transfer_seconds = median(start_seconds);
  }

 private:
  void* buffer(int extent) const {
    return buffers_ + std::min(extent, kTierExtents - 1) * tier_.extent_bytes(0);
  }

  Tier& tier_;
  std::byte* buffers_;
};

}  // namespace

Profiler::Profiler(std::int64_t work_bytes)
    : memory_(std::max<std::int64_t>(work_bytes, kTierExtents * 16 * kAlignment),
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

std::vector<std::vector<double>> Profiler::op_seconds(const lower::Executable& step) {
  constexpr double kCopyBytesPerSecond = 4e9;
  std::vector<std::vector<double>> seconds;
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
    seconds.emplace_back();
    for (std::size_t variant = 0; variant < variants; ++variant) {
      const kernels::Kernel& kernel =
          step.kernel(static_cast<ir::OpId>(i), static_cast<std::int32_t>(variant));
      const auto [known, is_new] = known_.try_emplace(&kernel, 0);
      if (is_new) known->second = measure(step, static_cast<ir::OpId>(i), kernel);
      seconds.back().push_back(known->second);
    }
  }
  return seconds;
}

void Profiler::tier(const MakeTier& make, plan::Profile& profile) {
  const std::int64_t extent =
      std::min(kLargestExtent, memory_.size_bytes() / kTierExtents / kAlignment * kAlignment);
  std::vector<std::int64_t> extents(kTierExtents, extent);
  extents.push_back(kAlignment);
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

namespace {

/// Follows what a step does to a pool that is nearly full: slots of one kind get memory, each in turn, and
/// give it back when others need it.
class Churn {
 public:
  Churn(VirtualPool& pool, std::span<const std::int64_t> slots, int first, int count)
      : pool_(pool), slots_(slots), first_(first), count_(count) {}

  struct Spent {
    double seconds = 0, moves = 0, bytes = 0, times = 0;
  };

  /// What an acquire with its release takes. The round that fills the pool does not count.
  Spent measure() {
    constexpr int kRounds = 5;
    round();
    std::vector<double> seconds;
    Spent spent;
    for (int i = 0; i < kRounds; ++i) {
      const std::int64_t moves_before = pool_.moves();
      seconds.push_back(round());
      spent.moves += static_cast<double>(pool_.moves() - moves_before) / kRounds;
    }
    spent.seconds = median(seconds);
    for (int i = 0; i < count_; ++i) spent.bytes += static_cast<double>(size(first_ + i));
    spent.times = count_;
    while (!held_.empty()) release_oldest();
    return spent;
  }

 private:
  std::int64_t size(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }

  double round() {
    double seconds = 0;
    for (int i = 0; i < count_; ++i) {
      const int slot = first_ + i * 7 % count_;
      // As after an op: threads that compute are still about, and moving memory has to interrupt them.
#pragma omp parallel
      asm volatile("");
      const double begin = clock_seconds();
      while (!pool_.fits(slot)) release_oldest();
      pool_.acquire(slot);
      seconds += clock_seconds() - begin;
      held_.push_back(slot);
    }
    return seconds;
  }

  void release_oldest() {
    pool_.release(held_.front());
    held_.pop_front();
  }

  VirtualPool& pool_;
  std::span<const std::int64_t> slots_;
  int first_, count_;
  std::deque<int> held_;
};

}  // namespace

void Profiler::mapping(std::int64_t work_bytes, plan::HostProfile& profile) {
  // The pool stays below what the neediest op takes, which is there for the taking. Slots of each kind are
  // three times what it holds, so that none is still held when its turn comes again.
  const std::int64_t capacity = std::max(work_bytes / 4 * 3, 64 * kAlignment);
  std::vector<std::int64_t> slots;
  const auto add = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t size = 3 * capacity / count * (count / 2 + i) / count;
      slots.push_back(std::max(size / kAlignment, std::int64_t{1}) * kAlignment);
    }
  };
  constexpr int kSmall = 192, kLarge = 24;
  add(kSmall);
  add(kLarge);
  VirtualPool pool(slots, capacity);
  const Churn::Spent small = Churn(pool, slots, 0, kSmall).measure();
  const Churn::Spent large = Churn(pool, slots, kSmall, kLarge).measure();
  // Two equations: seconds = moves * mapping_seconds + bytes * mapping_seconds_per_byte.
  const double both = small.moves * large.bytes - large.moves * small.bytes;
  const double each = both == 0 ? 0 : (small.seconds * large.bytes - large.seconds * small.bytes) / both;
  profile.mapping_seconds = std::clamp(each, 0.0, small.seconds / std::max(small.moves, 1.0));
  profile.mapping_seconds_per_byte =
      std::max(0.0, small.seconds - small.moves * profile.mapping_seconds) / small.bytes;
  profile.moves_each = small.moves / small.times;
}

}  // namespace penstock::run
