#include "plan/evictions.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace penstock::plan {
namespace {

/// A gap that may be swapped. Positions [first, last] are free of the storage then; with `wrap`, [first, end]
/// and [0, last].
struct Gap {
  ir::StorageId storage = ir::kNone;
  std::size_t access = 0;
  std::int64_t first = 0, last = 0;
  bool wrap = false;
  bool written = false;  ///< the value changed since the gap before: it has to be written
  double seconds = 0;    ///< of compute between its two uses
  double transfer_seconds = 0;
};

class Chooser {
 public:
  Chooser(const Problem& problem, const Profile& profile, const EvictionOptions& options,
          const SwapSet* pinned)
      : problem_(problem),
        profile_(profile),
        options_(options),
        pinned_(pinned),
        positions_(static_cast<std::int64_t>(problem.ops.size())),
        chosen_(problem),
        memory_(problem.ops.size()),
        starts_(problem.ops.size() + 1) {
    start_seconds_.push_back(0);
    for (const ir::OpId op : problem.order)
      start_seconds_.push_back(start_seconds_.back() + profile.seconds(op));
  }

  SwapSet choose() {
    add_base_memory(problem_, chosen_, memory_);
    find_gaps();
    // Gaps too short for their transfers stall compute: only where nothing else helps.
    sweep(true);
    sweep(false);
    take_back();
    return std::move(chosen_);
  }

 private:
  void find_gaps() {
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const StorageInfo& storage = problem_.storages[s];
      if (!storage.swappable || storage.footprint_bytes == 0) continue;
      bool written = storage.carried;
      for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
        written |= storage.accesses[k].writes;
        if (!is_needed_after(storage, k)) continue;
        if (pinned_ != nullptr && pinned_->contains(static_cast<ir::StorageId>(s), k)) continue;
        add_gap(static_cast<ir::StorageId>(s), k, written);
      }
    }
  }

  void add_gap(ir::StorageId s, std::size_t access, bool written) {
    const StorageInfo& storage = problem_.storage(s);
    Gap gap;
    gap.storage = s;
    gap.access = access;
    gap.wrap = is_wrap(storage, access);
    gap.written = written;
    const std::int64_t use = storage.accesses[access].op;
    const std::int64_t next = gap.wrap ? storage.accesses.front().op : storage.accesses[access + 1].op;
    gap.first = use + 1;
    gap.last = next - 1;
    if (!gap.wrap && gap.last < gap.first) return;
    const double until =
        start_seconds_[static_cast<std::size_t>(next)] + (gap.wrap ? start_seconds_.back() : 0);
    gap.seconds = until - start_seconds_[static_cast<std::size_t>(use) + 1];
    const auto bytes = static_cast<double>(storage.size_bytes);
    gap.transfer_seconds =
        bytes / profile_.tier.read_bandwidth + (written ? bytes / profile_.tier.write_bandwidth : 0);
    starts_[static_cast<std::size_t>(gap.wrap ? 0 : gap.first)].push_back(gaps_.size());
    if (gap.wrap) starts_[static_cast<std::size_t>(gap.first)].push_back(gaps_.size());
    gaps_.push_back(gap);
  }

  bool covers(const Gap& gap, std::int64_t position) const {
    return gap.wrap ? position >= gap.first || position <= gap.last
                    : position >= gap.first && position <= gap.last;
  }

  double score(const Gap& gap) const {
    return std::pow(gap.seconds, options_.distance_power) *
           static_cast<double>(problem_.storage(gap.storage).footprint_bytes) / gap.transfer_seconds;
  }

  bool is_long_enough(const Gap& gap) const {
    return gap.seconds >= options_.settle_factor * gap.transfer_seconds + 2 * profile_.tier.latency_seconds;
  }

  void add(const Gap& gap, int sign) {
    const std::int64_t bytes = sign * problem_.storage(gap.storage).footprint_bytes;
    if (gap.wrap) {
      memory_.add(gap.first, positions_ - 1, bytes);
      memory_.add(0, gap.last, bytes);
    } else {
      memory_.add(gap.first, gap.last, bytes);
    }
  }

  void sweep(bool only_long) {
    using Entry = std::pair<double, std::size_t>;
    std::priority_queue<Entry> open;
    for (std::int64_t i = 0; i < positions_; ++i) {
      for (const std::size_t g : starts_[static_cast<std::size_t>(i)]) {
        if (!only_long || is_long_enough(gaps_[g])) open.emplace(score(gaps_[g]), g);
      }
      while (memory_.at(i) > problem_.budget_bytes && !open.empty()) {
        const Gap& gap = gaps_[open.top().second];
        open.pop();
        if (!covers(gap, i) || chosen_.contains(gap.storage, gap.access)) continue;
        chosen_.set(gap.storage, gap.access, true);
        add(gap, -1);
      }
    }
  }

  /// The dearest first: what others freed meanwhile may suffice without it.
  void take_back() {
    std::vector<std::size_t> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (chosen_.contains(gaps_[g].storage, gaps_[g].access)) order.push_back(g);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const bool long_a = is_long_enough(gaps_[a]), long_b = is_long_enough(gaps_[b]);
      return long_a != long_b ? !long_a : score(gaps_[a]) < score(gaps_[b]);
    });
    for (const std::size_t g : order) {
      const Gap& gap = gaps_[g];
      std::int64_t highest = 0;
      if (gap.wrap) {
        if (gap.first < positions_) highest = memory_.max(gap.first, positions_ - 1);
        if (gap.last >= 0) highest = std::max(highest, memory_.max(0, gap.last));
      } else {
        highest = memory_.max(gap.first, gap.last);
      }
      if (highest + problem_.storage(gap.storage).footprint_bytes > problem_.budget_bytes) continue;
      chosen_.set(gap.storage, gap.access, false);
      add(gap, 1);
    }
  }

  const Problem& problem_;
  const Profile& profile_;
  const EvictionOptions& options_;
  const SwapSet* pinned_;
  std::int64_t positions_;
  SwapSet chosen_;
  MemoryCurve memory_;
  std::vector<double> start_seconds_;  ///< of compute before each position
  std::vector<Gap> gaps_;
  std::vector<std::vector<std::size_t>> starts_;  ///< gaps that begin to cover a position
};

}  // namespace

SwapSet choose_evictions(const Problem& problem, const Profile& profile, const EvictionOptions& options,
                         const SwapSet* pinned) {
  return Chooser(problem, profile, options, pinned).choose();
}

}  // namespace penstock::plan
