#include "plan/evictions.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/long_vector.h"
#include "plan/memory_curve.h"

namespace penstock::plan {
namespace {

/// A gap that may be given up. Positions [first, last] are free of the storage then; with `wrap`, [first,
/// end] and [0, last].
struct Gap {
  ir::StorageId storage = ir::kNone;
  std::size_t access = 0;
  Position first = 0, last = 0;
  bool wrap = false;
  bool drop = false;     ///< recomputing is cheaper than swapping
  bool hurried = false;  ///< too short for its transfers: stalls compute
  double seconds = 0;    ///< of compute between its two uses
  double cost = 0;
  std::int64_t bytes = 0;  ///< of memory that it frees
  double score = 0;        ///< what it frees, how long, for its cost
};

class Chooser {
 public:
  Chooser(const Step& step, const Profile& profile, const TransferPrices& prices,
          const GapMap<double>* recompute_seconds)
      : step_(step),
        budget_bytes_(step.problem().budget_bytes),
        profile_(profile),
        prices_(prices),
        recompute_seconds_(recompute_seconds),
        positions_(step.positions()),
        result_{SwapSet(step), SwapSet(step)},
        memory_(static_cast<std::size_t>(step.positions())) {
    start_seconds_.reserve(static_cast<std::size_t>(positions_) + 1);
    anchors_.reserve(static_cast<std::size_t>(positions_));
    start_seconds_.push_back(0);
    ir::OpId next = 0;
    for (Position p = 0; p < positions_; ++p) {
      const ir::OpId op = step.op(p);
      start_seconds_.push_back(start_seconds_.back() + profile.seconds(op));
      anchors_.push_back(std::min<ir::OpId>(next, static_cast<ir::OpId>(prices.read.size()) - 1));
      if (op == next) ++next;
    }
  }

  Evictions choose() {
    memory_.add_all(base_memory(step_, result_.swapped));
    find_gaps();
    find_starts();
    sweep(true);
    sweep(false);
    take_back();
    return std::move(result_);
  }

 private:
  void find_gaps() {
    for (std::size_t s = 0; s < step_.storages(); ++s) {
      const StorageUses storage = step_.storage(static_cast<ir::StorageId>(s));
      if (storage.footprint_bytes == 0) continue;
      bool written = storage.carried;
      for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
        written |= storage.accesses[k].writes;
        if (is_needed_after(storage, k)) add_gap(static_cast<ir::StorageId>(s), storage, k, written);
      }
    }
  }

  void add_gap(ir::StorageId s, const StorageUses& storage, std::size_t access, bool written) {
    Gap gap;
    gap.storage = s;
    gap.bytes = storage.footprint_bytes;
    gap.access = access;
    gap.wrap = is_wrap(storage, access);
    const Position use = storage.accesses[access].position;
    const Position next =
        gap.wrap ? storage.accesses.front().position : storage.accesses[access + 1].position;
    gap.first = use + 1;
    gap.last = next - 1;
    if (!gap.wrap && gap.last < gap.first) return;
    const double until =
        start_seconds_[static_cast<std::size_t>(next)] + (gap.wrap ? start_seconds_.back() : 0);
    gap.seconds = until - start_seconds_[static_cast<std::size_t>(use) + 1];
    const double bytes = static_cast<double>(storage.size_bytes);
    const double write_seconds = written ? bytes / profile_.tier.write_bandwidth : 0;
    const double read_seconds = bytes / profile_.tier.read_bandwidth;
    gap.hurried = gap.seconds < write_seconds + read_seconds + 2 * profile_.tier.latency_seconds;
    gap.cost = std::numeric_limits<double>::infinity();
    if (storage.swappable) {
      const auto price = [&](const LongVector<double>& of, Position position) {
        return of[static_cast<std::size_t>(anchors_[static_cast<std::size_t>(position)])];
      };
      gap.cost = write_seconds * price(prices_.write, use) + read_seconds * price(prices_.read, next);
    }
    if (recompute_seconds_ != nullptr && recompute_seconds_->at(s, access) < gap.cost) {
      gap.drop = true;
      gap.hurried = false;
      gap.cost = recompute_seconds_->at(s, access);
    }
    if (gap.cost == std::numeric_limits<double>::infinity()) return;
    gap.score = gap.seconds * static_cast<double>(gap.bytes) / (gap.cost + 1e-12);
    gaps_.push_back(gap);
  }

  /// Sorts the gaps by where they begin to cover positions, which those over the boundary do twice.
  void find_starts() {
    first_start_.assign(static_cast<std::size_t>(positions_) + 2, 0);
    const auto for_each_start = [&](const auto& use) {
      for (std::size_t g = 0; g < gaps_.size(); ++g) {
        use(static_cast<std::size_t>(gaps_[g].wrap ? 0 : gaps_[g].first), g);
        if (gaps_[g].wrap) use(static_cast<std::size_t>(gaps_[g].first), g);
      }
    };
    for_each_start([&](std::size_t position, std::size_t) { ++first_start_[position + 1]; });
    for (std::size_t p = 1; p < first_start_.size(); ++p) first_start_[p] += first_start_[p - 1];
    starts_.resize(first_start_.back());
    LongVector<std::uint32_t> next = first_start_;
    for_each_start([&](std::size_t position, std::size_t g) {
      starts_[next[position]++] = static_cast<std::uint32_t>(g);
    });
  }

  SwapSet& set_of(const Gap& gap) { return gap.drop ? result_.dropped : result_.swapped; }

  bool covers(const Gap& gap, Position position) const {
    return gap.wrap ? position >= gap.first || position <= gap.last
                    : position >= gap.first && position <= gap.last;
  }

  void add(const Gap& gap, int sign) {
    const std::int64_t bytes = sign * gap.bytes;
    if (gap.wrap) {
      memory_.add(gap.first, positions_ - 1, bytes);
      memory_.add(0, gap.last, bytes);
    } else {
      memory_.add(gap.first, gap.last, bytes);
    }
  }

  /// Hurried gaps only where nothing else helps.
  void sweep(bool without_hurried) {
    std::priority_queue<std::pair<double, std::uint32_t>> open;
    for (Position i = 0; i < positions_; ++i) {
      const auto p = static_cast<std::size_t>(i);
      for (std::uint32_t k = first_start_[p]; k < first_start_[p + 1]; ++k) {
        const std::uint32_t g = starts_[k];
        if (!without_hurried || !gaps_[g].hurried) open.emplace(gaps_[g].score, g);
      }
      while (memory_.at(i) > budget_bytes_ && !open.empty()) {
        const Gap& gap = gaps_[open.top().second];
        open.pop();
        if (!covers(gap, i) || set_of(gap).contains(gap.storage, gap.access)) continue;
        set_of(gap).set(gap.storage, gap.access, 1);
        add(gap, -1);
      }
    }
  }

  /// The dearest first: what others freed meanwhile may suffice without it.
  void take_back() {
    LongVector<std::size_t> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (set_of(gaps_[g]).contains(gaps_[g].storage, gaps_[g].access)) order.push_back(g);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return gaps_[a].hurried != gaps_[b].hurried ? gaps_[a].hurried : gaps_[a].score < gaps_[b].score;
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
      if (highest + gap.bytes > budget_bytes_) continue;
      set_of(gap).set(gap.storage, gap.access, 0);
      add(gap, 1);
    }
  }

  const Step& step_;
  std::int64_t budget_bytes_;
  const Profile& profile_;
  const TransferPrices& prices_;
  const GapMap<double>* recompute_seconds_;
  Position positions_;
  Evictions result_;
  MemoryCurve memory_;
  LongVector<double> start_seconds_;  ///< of compute before each position
  LongVector<ir::OpId> anchors_;  ///< by position: the op that runs there or, of reruns, the one they run for
  LongVector<Gap> gaps_;
  LongVector<std::uint32_t> starts_;       ///< by position: gaps that begin to cover it there
  LongVector<std::uint32_t> first_start_;  ///< where in starts_ those of a position begin
};

}  // namespace

Evictions choose_evictions(const Step& step, const Profile& profile, const TransferPrices& prices,
                           const GapMap<double>* recompute_seconds) {
  return Chooser(step, profile, prices, recompute_seconds).choose();
}

}  // namespace penstock::plan
