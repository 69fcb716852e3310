#include "plan/memory_cut.h"

#include <algorithm>
#include <limits>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
/// Weights that are tried: this many in each direction, then half as far apart around the best, and so on.
constexpr int kGrid = 4;
constexpr int kHalvings = 11;
constexpr std::ptrdiff_t kFew = 16;
constexpr int kSpacePrices = 8;
constexpr double kRoundingBytes = 0.5;

}  // namespace

LongVector<TierPrice> tier_prices(const TierProfile& tier) {
  const double read_together = tier.read_bandwidth_together, write_together = tier.write_bandwidth_together;
  const double read = std::max(tier.read_bandwidth, read_together);
  const double write = std::max(tier.write_bandwidth, write_together);
  if (read_together / read + write_together / write <= 1) return {{1 / read, 1 / write}};
  return {{1 / read, (1 - read_together / read) / write_together},
          {(1 - write_together / write) / read_together, 1 / write}};
}

LongVector<double> fastest_seconds(const Profile& profile) {
  LongVector<double> fastest;
  fastest.reserve(profile.op_seconds.size());
  for (std::size_t op = 0; op < profile.op_seconds.size(); ++op) {
    const std::span<const double> variants = profile.op_seconds[op];
    fastest.push_back(*std::min_element(variants.begin(), variants.end()));
  }
  return fastest;
}

Dependencies::Dependencies(const ir::Graph& graph) : graph_(graph), consumers_(ir::consumers(graph)) {}

LongVector<std::int8_t> Dependencies::sides(ir::OpId op) const {
  LongVector<std::int8_t> sides(graph_.ops.size(), 0);
  LongVector<ir::OpId> open{op};
  const auto visit = [&](ir::OpId other, std::int8_t side) {
    if (other == ir::kNone || sides[static_cast<std::size_t>(other)] != 0) return;
    sides[static_cast<std::size_t>(other)] = side;
    open.push_back(other);
  };
  while (!open.empty()) {
    const ir::OpId at = open.back();
    open.pop_back();
    for (const ir::TensorId input : graph_.op(at).inputs) visit(graph_.tensor(input).producer, -1);
  }
  open.push_back(op);
  while (!open.empty()) {
    const ir::OpId at = open.back();
    open.pop_back();
    for (const ir::TensorId output : graph_.op(at).outputs) {
      for (const ir::OpId consumer : consumers_[static_cast<std::size_t>(output)]) visit(consumer, 1);
    }
  }
  return sides;
}

MemoryCut::MemoryCut(const Problem& problem, const LongVector<double>& op_seconds,
                     const LongVector<TierPrice>& tier, const Dependencies& dependencies, ir::OpId op)
    : problem_(problem), op_seconds_(op_seconds), tier_(tier) {
  collect(dependencies, op);
}

void MemoryCut::collect(const Dependencies& dependencies, ir::OpId op) {
  const LongVector<std::int8_t> sides = dependencies.sides(op);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const double seconds = op_seconds_[i];
    if (static_cast<ir::OpId>(i) == op) {
      own_seconds_ = seconds;
    } else {
      (sides[i] < 0 ? before_seconds_ : sides[i] > 0 ? after_seconds_ : free_seconds_) += seconds;
    }
  }
  const ir::Graph& graph = *problem_.graph;
  const StepOp info = problem_.op(op);
  LongVector<std::uint8_t> counted(problem_.storages.size(), 0);
  excess_bytes_ = static_cast<double>(
      *std::min_element(info.scratch_bytes.begin(), info.scratch_bytes.end()) - problem_.budget_bytes);
  for (const Use& use : info.uses) {
    // What the op may write over needs no memory of its own while it runs: it pays like any live value.
    const bool may_go = std::any_of(info.overwrites.begin(), info.overwrites.end(),
                                    [&](const Overwrite& pair) { return pair.from == use.storage; });
    if (may_go) continue;
    counted[static_cast<std::size_t>(use.storage)] = 1;
    excess_bytes_ += static_cast<double>(problem_.storage(use.storage).footprint_bytes);
  }
  LongVector<double> made_bytes(graph.ops.size(), 0);
  LongVector<ir::OpId> makers;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto value = static_cast<ir::TensorId>(t);
    const ir::StorageId s = graph.tensors[t].storage;
    const StorageInfo& storage = problem_.storage(s);
    if (storage.footprint_bytes == 0 || counted[static_cast<std::size_t>(s)] != 0) continue;
    const ir::OpId producer = graph.tensors[t].producer;
    const bool made_before = producer == ir::kNone ? storage.carried && storage.begin == value
                                                   : sides[static_cast<std::size_t>(producer)] < 0;
    if (!made_before) continue;
    const auto& consumers = dependencies.consumers()[t];
    const bool read_after = std::any_of(consumers.begin(), consumers.end(), [&](ir::OpId consumer) {
      return sides[static_cast<std::size_t>(consumer)] > 0;
    });
    if (!read_after && !(storage.carried && storage.end == value)) continue;
    counted[static_cast<std::size_t>(s)] = 1;
    live_.push_back(describe(s, value, read_after));
    makers.push_back(producer);
    if (producer != ir::kNone) made_bytes[static_cast<std::size_t>(producer)] += live_.back().footprint_bytes;
    if (storage.carried && storage.begin == value) {
      live_.back().read |= !consumers.empty();
    } else if (storage.carried && storage.end == value && storage.begin >= 0) {
      live_.back().read |= !dependencies.consumers()[static_cast<std::size_t>(storage.begin)].empty();
    }
  }
  for (std::size_t i = 0; i < live_.size(); ++i) {
    excess_bytes_ += live_[i].footprint_bytes;
    const ir::OpId maker = makers[i];
    const bool again = maker != ir::kNone && !ir::has_side_effects(graph.op(maker).kind);
    live_[i].rerun_seconds =
        again ? op_seconds_[static_cast<std::size_t>(maker)] / made_bytes[static_cast<std::size_t>(maker)]
              : kImpossible;
  }
}

MemoryCut::Live MemoryCut::describe(ir::StorageId s, ir::TensorId value, bool read_after) const {
  const StorageInfo& storage = problem_.storage(s);
  Live live;
  live.footprint_bytes = static_cast<double>(storage.footprint_bytes);
  live.moved_bytes = static_cast<double>(storage.size_bytes);
  live.movable = storage.swappable;
  live.read = read_after;
  live.read_any_part = !read_after;
  live.written = !storage.carried || storage.begin != storage.end;
  live.written_any_part = storage.carried && storage.begin == value;
  return live;
}

double MemoryCut::least_cost() {
  double cost = 0, needed_bytes = excess_bytes_;
  const auto take = [&](auto first, auto last) {
    for (; first != last && needed_bytes > 0; ++first) {
      const double bytes = std::min(first->second, needed_bytes);
      cost += first->first * bytes;
      needed_bytes -= bytes;
    }
  };
  // Halves what is undecided until little is left to be sorted.
  auto first = prices_.begin(), last = prices_.end();
  while (last - first > kFew) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last);
    double bytes = 0;
    for (auto it = first; it != middle; ++it) bytes += it->second;
    if (bytes > needed_bytes) {
      last = middle;
    } else {
      take(first, middle);
      first = middle;
    }
  }
  std::sort(first, last);
  take(first, last);
  return needed_bytes > kRoundingBytes ? kImpossible : cost;
}

double MemoryCut::seconds_at(const Weights& weights, const TierPrice& before, const TierPrice& after) {
  const double write_before = (1 - weights.before) * before.write,
               write_after = (1 - weights.after) * after.write;
  const double read_before = (1 - weights.before) * before.read,
               read_after = (1 - weights.after) * after.read;
  prices_.clear();
  for (const Live& live : live_) {
    double price = live.rerun_seconds == kImpossible ? kImpossible : weights.after * live.rerun_seconds;
    if (live.movable) {
      double move = space_price_;
      if (live.written) move += live.written_any_part ? std::min(write_before, write_after) : write_before;
      if (live.read) move += live.read_any_part ? std::min(read_before, read_after) : read_after;
      price = std::min(price, move * live.moved_bytes / live.footprint_bytes);
    }
    if (price != kImpossible) prices_.emplace_back(price, live.footprint_bytes);
  }
  return own_seconds_ + weights.before * before_seconds_ + weights.after * after_seconds_ +
         std::min(weights.before, weights.after) * free_seconds_ + least_cost() -
         (space_price_ > 0 ? space_price_ * static_cast<double>(problem_.tier_bytes) : 0);
}

/// 0, and where the tier has too little space for all that could move some that are about what computing
/// again costs.
LongVector<double> MemoryCut::space_prices() const {
  LongVector<double> prices{0}, reruns;
  double movable_bytes = 0;
  for (const Live& live : live_) {
    if (!live.movable) continue;
    movable_bytes += live.moved_bytes;
    if (live.rerun_seconds != kImpossible) {
      reruns.push_back(live.rerun_seconds * live.footprint_bytes / live.moved_bytes);
    }
  }
  if (problem_.tier_bytes == kNoLimit || movable_bytes <= static_cast<double>(problem_.tier_bytes))
    return prices;
  if (reruns.empty()) return prices;
  std::sort(reruns.begin(), reruns.end());
  for (int part = 1; part <= kSpacePrices; ++part) {
    prices.push_back(reruns[(reruns.size() - 1) * static_cast<std::size_t>(part) / kSpacePrices]);
  }
  return prices;
}

double MemoryCut::bound_seconds() {
  if (excess_bytes_ <= 0) return 0;
  double best_seconds = 0;
  for (const double price : space_prices()) {
    space_price_ = price;
    best_seconds = std::max(best_seconds, bound_at_price());
  }
  return best_seconds;
}

double MemoryCut::bound_at_price() {
  double best_seconds = 0;
  for (const TierPrice& before : tier_) {
    for (const TierPrice& after : tier_) {
      Weights center{0.5, 0.5};
      double center_seconds = 0;
      double spacing = 1.0 / kGrid;
      int reach = kGrid / 2;
      for (int round = 0; round <= kHalvings; ++round) {
        const Weights around = center;
        for (int i = -reach; i <= reach; ++i) {
          for (int j = -reach; j <= reach; ++j) {
            const Weights tried{std::clamp(around.before + i * spacing, 0.0, 1.0),
                                std::clamp(around.after + j * spacing, 0.0, 1.0)};
            const double seconds = seconds_at(tried, before, after);
            if (seconds <= center_seconds) continue;
            center_seconds = seconds;
            center = tried;
          }
        }
        spacing /= 2;
        reach = 1;
      }
      best_seconds = std::max(best_seconds, center_seconds);
    }
  }
  return best_seconds;
}

}  // namespace penstock::plan
