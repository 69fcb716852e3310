#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "fit/pool_model.h"
#include "fit/step_problem.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "memory/packed_pool.h"
#include "memory/virtual_pool.h"
#include "plan/random_step.h"
#include "run/executor.h"
#include "tier/tier.h"

namespace penstock::run {

using fit::map_extents;
using fit::map_slots;
using fit::StorageMap;

/// A pool that holds all of a toy.
constexpr std::int64_t kPlenty = std::int64_t{1} << 24;

/// How a virtual pool of that capacity rounds in which each slot has a place of its own.
inline plan::PoolRule virtual_pool_rule(const StorageMap& map, std::int64_t capacity_bytes) {
  const VirtualPoolRule pool(capacity_bytes);
  plan::PoolRule rule;
  rule.fixed_bytes = pool.fixed_bytes(map.slot_bytes);
  rule.budget_bytes = capacity_bytes - rule.fixed_bytes;
  rule.footprint_bytes = [pool](std::int64_t bytes) { return pool.footprint_bytes(bytes); };
  rule.swappable = [pool](ir::StorageId, std::int64_t bytes) { return !pool.is_small(bytes); };
  return rule;
}

/// The problem of a step in a virtual pool of that capacity.
inline plan::Problem make_problem(const lower::Executable& step, const StorageMap& map,
                                  std::int64_t capacity_bytes) {
  return fit::step_problem(step, map, virtual_pool_rule(map, capacity_bytes));
}

/// The pool that a layout of the model's is for, with poison in what is released.
inline std::unique_ptr<Pool> poisoned_pool(const StorageMap& map, const fit::PoolModel& model,
                                           const fit::PoolSize& size) {
  if (model.grain_bytes() == 0) return std::make_unique<PackedPool>(map.slot_bytes, size.small_bytes, true);
  return std::make_unique<VirtualPool>(
      map.slot_bytes, VirtualPoolRule(model.rounding_bytes()),
      VirtualPoolSize{size.small_bytes, size.paged_bytes, size.address_bytes}, true);
}

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9E3779B97F4A7C15U + (a << 6) + (a >> 2);
  a *= 0xBF58476D1CE4E5B9U;
  return a ^ (a >> 29);
}

/// Hands out what it reads.
class ToyOutput final : public kernels::Kernel {
 public:
  void run(const kernels::KernelArgs& args) const override {
    if (args.step->take) args.step->take(0, args.inputs[0]);
  }
  std::string implementation() const override { return "toy"; }
};

/// How a toy kernel behaves.
struct ToyTraits {
  std::int64_t scratch_bytes = 0;
  std::uint64_t variant = 0;  ///< other numbers than 0 make other bits
  bool can_overwrite = true;  ///< otherwise it writes to its outputs before it reads
  LongVector<bool> in_place;  ///< by output: an input of the graph has the same storage
  bool is_exchange = false;   ///< what it makes depends on how many of them ran before in this step
  std::shared_ptr<std::uint64_t> exchanges;
};

/// Every word of every output depends on every word of every input, on the op and on the step, so that one
/// wrong bit anywhere changes all that follows. Uses all of its scratch.
class ToyKernel final : public kernels::Kernel {
 public:
  ToyKernel(ir::OpId op, LongVector<std::int64_t> inputs, LongVector<std::int64_t> outputs, ToyTraits traits)
      : op_(op),
        input_bytes_(std::move(inputs)),
        output_bytes_(std::move(outputs)),
        traits_(std::move(traits)) {}

  void run(const kernels::KernelArgs& args) const override {
    std::uint64_t digest = mix(static_cast<std::uint64_t>(op_), args.step->seed + traits_.variant);
    // Only the op without inputs sees the step, as a real input gets another value each time.
    if (input_bytes_.empty()) {
      digest = mix(digest, args.step->step);
      *traits_.exchanges = 0;
    }
    if (traits_.is_exchange) digest = mix(digest, ++*traits_.exchanges);
    for (std::size_t o = 0; o < output_bytes_.size(); ++o) {
      if (traits_.can_overwrite || traits_.in_place[o]) continue;
      std::memset(args.outputs[o], 0x5A, static_cast<std::size_t>(output_bytes_[o]));
    }
    for (std::size_t i = 0; i < input_bytes_.size(); ++i) {
      const auto* words = static_cast<const std::uint32_t*>(args.inputs[i]);
      for (std::int64_t w = 0; w < input_bytes_[i] / 4; ++w) digest = mix(digest, words[w]);
    }
    if (traits_.scratch_bytes > 0)
      std::memset(args.scratch, static_cast<int>(digest & 0xFF),
                  static_cast<std::size_t>(traits_.scratch_bytes));
    for (std::size_t o = 0; o < output_bytes_.size(); ++o) {
      auto* words = static_cast<std::uint32_t*>(args.outputs[o]);
      for (std::int64_t w = 0; w < output_bytes_[o] / 4; ++w) {
        words[w] = static_cast<std::uint32_t>(mix(digest + o, static_cast<std::uint64_t>(w)));
      }
    }
  }
  std::int64_t scratch_bytes() const override { return traits_.scratch_bytes; }
  std::string implementation() const override { return "toy"; }
  bool can_overwrite(std::size_t, std::size_t) const override { return traits_.can_overwrite; }

 private:
  ir::OpId op_;
  LongVector<std::int64_t> input_bytes_, output_bytes_;
  ToyTraits traits_;
};

struct ToyOptions {
  bool variants = false;   ///< each op has two kernels
  int overwrite_each = 1;  ///< each so many-th op's kernel may write over its inputs
};

inline lower::Executable toy_executable(const plan::RandomStep& step, const ToyOptions& options = {}) {
  lower::Executable executable;
  executable.graph = step.graph;
  executable.scratch_bytes = step.scratch_bytes;
  const ir::Graph& graph = step.graph;
  const auto exchanges = std::make_shared<std::uint64_t>(0);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    if (op.kind == ir::OpKind::output) {
      executable.kernels.push_back(std::make_shared<ToyOutput>());
      if (!options.variants) continue;
      executable.variants.push_back({executable.kernels.back()});
      executable.variant_scratch_bytes.push_back({0});
      continue;
    }
    LongVector<std::int64_t> inputs, outputs;
    for (const ir::TensorId t : op.inputs) inputs.push_back(graph.tensor(t).size_bytes());
    for (const ir::TensorId t : op.outputs) outputs.push_back(graph.tensor(t).size_bytes());
    ToyTraits traits;
    traits.scratch_bytes = step.scratch_bytes[i];
    traits.can_overwrite = i % static_cast<std::size_t>(options.overwrite_each) == 0;
    traits.is_exchange = ir::has_side_effects(op.kind) && op.kind != ir::OpKind::input;
    traits.exchanges = exchanges;
    for (const ir::TensorId out : op.outputs) {
      traits.in_place.push_back(std::any_of(op.inputs.begin(), op.inputs.end(), [&](ir::TensorId in) {
        return graph.tensor(in).storage == graph.tensor(out).storage;
      }));
    }
    executable.kernels.push_back(
        std::make_shared<ToyKernel>(static_cast<ir::OpId>(i), inputs, outputs, traits));
    if (!options.variants) continue;
    ToyTraits other = traits;
    other.variant = 1;
    other.scratch_bytes = step.scratch_bytes[i] / 8 * 4;
    executable.variants.push_back(
        {executable.kernels.back(),
         std::make_shared<ToyKernel>(static_cast<ir::OpId>(i), inputs, outputs, other)});
    executable.variant_scratch_bytes.push_back({traits.scratch_bytes, other.scratch_bytes});
  }
  return executable;
}

/// A tier that does nothing until it must: bytes move when they are waited for, and a buffer being read into
/// is filled with garbage until then. Whoever touches a buffer too early, or changes one being written, gets
/// wrong results, and so does who reads what another extent at the same place has written over. Fails from
/// the `fail_at`-th request on.
class LazyTier final : public Tier {
 public:
  explicit LazyTier(TierExtents extents, std::int64_t fail_at = -1)
      : extents_(std::move(extents)),
        file_(static_cast<std::size_t>(extents_.total_bytes())),
        written_(static_cast<std::size_t>(extents_.count()), false),
        fail_at_(fail_at) {}

  int extent_count() const override { return extents_.count(); }
  std::int64_t extent_bytes(int extent) const override { return extents_.size_bytes(extent); }
  std::int64_t extent_offset(int extent) const override { return extents_.offset_bytes(extent); }
  void place(std::span<const std::int64_t> offsets) override { extents_.place(offsets); }
  Ticket write(int extent, const void* data, Priority) override {
    requests_[++last_] = {extent, const_cast<void*>(data), true};
    return last_;
  }
  Ticket read(int extent, void* data, Priority) override {
    std::memset(data, 0xAB, static_cast<std::size_t>(extent_bytes(extent)));
    requests_[++last_] = {extent, data, false};
    return last_;
  }
  void wait(Ticket ticket) override {
    if (fail_at_ >= 0 && static_cast<std::int64_t>(ticket) > fail_at_) throw RunError("the disk is on fire");
    const auto found = requests_.find(ticket);
    if (found == requests_.end()) return;
    const auto [extent, data, is_write] = found->second;
    char* bytes = file_.data() + extent_offset(extent);
    const auto size = static_cast<std::size_t>(extent_bytes(extent));
    if (is_write) {
      std::memcpy(bytes, data, size);
      written_[static_cast<std::size_t>(extent)] = true;
    } else {
      if (!written_[static_cast<std::size_t>(extent)])
        throw RunError("read of an extent that was never written");
      std::memcpy(data, bytes, size);
    }
    (is_write ? stats_.written_bytes : stats_.read_bytes) += extent_bytes(extent);
    requests_.erase(found);
  }
  bool done(Ticket ticket) override { return !requests_.contains(ticket); }
  TierStats stats() const override { return stats_; }
  std::size_t unfinished() const { return requests_.size(); }

 private:
  struct Request {
    int extent;
    void* data;
    bool is_write;
  };
  TierExtents extents_;
  LongVector<char> file_;
  LongVector<bool> written_;
  std::map<Ticket, Request> requests_;
  Ticket last_ = 0;
  TierStats stats_;
  std::int64_t fail_at_;
};

inline void fill_state(Executor& executor, const lower::Executable& step) {
  for (const ir::Carried& state : step.graph.carried) {
    const ir::Tensor& tensor = step.graph.tensor(state.begin);
    executor.write_state(tensor.storage, [&](void* data) {
      for (std::int64_t w = 0; w < tensor.size_bytes() / 4; ++w) {
        static_cast<std::uint32_t*>(data)[w] = static_cast<std::uint32_t>(
            mix(static_cast<std::uint64_t>(tensor.storage), static_cast<std::uint64_t>(w)));
      }
    });
  }
}

/// A hash of all state.
inline std::uint64_t state_digest(Executor& executor, const lower::Executable& step) {
  std::uint64_t digest = 0;
  for (const ir::Carried& state : step.graph.carried) {
    const ir::Tensor& tensor = step.graph.tensor(state.begin);
    executor.read_state(tensor.storage, [&](const void* data) {
      for (std::int64_t w = 0; w < tensor.size_bytes() / 4; ++w)
        digest = mix(digest, static_cast<const std::uint32_t*>(data)[w]);
    });
  }
  return digest;
}

}  // namespace penstock::run
