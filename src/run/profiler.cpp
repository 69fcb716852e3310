#include "run/profiler.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/error.h"
#include "base/median.h"
#include "run/residency.h"

namespace penstock::run {
namespace {

constexpr std::int64_t kAlignment = 4096;
/// What a direction of the tier is measured with, unless it is so slow that less must do.
constexpr std::int64_t kTierBytes = 128 * kMiB;
constexpr double kTierSeconds = 0.25;
constexpr int kTierExtents = 4;
constexpr std::int64_t kLargestExtent = 4 * kMiB;

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

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

  double latency() {
    std::vector<double> seconds;
    for (int i = 0; i < 9; ++i) {
      const double begin = clock_seconds();
      tier_.wait(tier_.read(kTierExtents, buffer(0)));
      seconds.push_back(clock_seconds() - begin);
    }
    return median(seconds);
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
    std::int64_t bytes = rounded(step.scratch_bytes[i]);
    if (!step.variants.empty()) {
      const auto& variants = step.variant_scratch_bytes[i];
      bytes = rounded(*std::max_element(variants.begin(), variants.end()));
    }
    for (const auto& [storage, size] : storages_of(step.graph, step.graph.ops[i])) bytes += rounded(size);
    most = std::max(most, bytes);
  }
  return most;
}

std::byte* Profiler::place(std::int64_t size_bytes) {
  std::byte* address = memory_.data() + used_bytes_;
  used_bytes_ += rounded(size_bytes);
  require(used_bytes_ <= memory_.size_bytes(), "profiler: an op needs more memory than was said");
  return address;
}

double Profiler::measure(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel) {
  const ir::Op& node = step.graph.op(op);
  used_bytes_ = 0;
  std::map<ir::StorageId, std::byte*> addresses;
  for (const auto& [storage, bytes] : storages_of(step.graph, node)) addresses[storage] = place(bytes);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const ir::TensorId t : node.inputs) {
    inputs.push_back(addresses[step.graph.tensor(t).storage]);
    // What an earlier kernel left behind may not be numbers, and as labels or indices it may be wrong.
    std::fill_n(addresses[step.graph.tensor(t).storage], step.graph.tensor(t).size_bytes(), std::byte{0});
  }
  for (const ir::TensorId t : node.outputs) outputs.push_back(addresses[step.graph.tensor(t).storage]);
  const kernels::StepContext context;
  kernels::KernelArgs args;
  args.inputs = inputs;
  args.outputs = outputs;
  args.scratch = place(kernel.scratch_bytes());
  args.step = &context;
  std::vector<double> seconds;
  const auto run = [&] {
    const double begin = clock_seconds();
    kernel.run(args);
    return clock_seconds() - begin;
  };
  // The first run is a rehearsal, unless it is so long that what it warms up does not matter.
  const double first = run();
  if (first > 0.1) return std::min(first, run());
  for (int i = 0; i < 3; ++i) seconds.push_back(run());
  return median(seconds);
}

std::vector<std::vector<double>> Profiler::op_seconds(const lower::Executable& step) {
  constexpr double kCopyBytesPerSecond = 4e9;
  std::vector<std::vector<double>> seconds;
  for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
    const ir::Op& op = step.graph.ops[i];
    if (ir::has_side_effects(op.kind)) {
      double bytes = 0;
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

plan::TierProfile Profiler::tier(const MakeTier& make) {
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
  plan::TierProfile profile;
  profile.write_bandwidth = meter.rate(false, true, bytes);
  profile.read_bandwidth = meter.rate(true, false, bytes);
  const double together = meter.rate(true, true, bytes);
  profile.write_bandwidth_together = std::min(together, profile.write_bandwidth);
  profile.read_bandwidth_together = std::min(together, profile.read_bandwidth);
  profile.latency_seconds = meter.latency();
  return profile;
}

}  // namespace penstock::run
