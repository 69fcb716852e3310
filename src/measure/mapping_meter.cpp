#include "measure/mapping_meter.h"

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "measure/placed_op.h"
#include "memory/virtual_pool.h"

namespace penstock::measure {
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

void measure_mapping(std::int64_t work_bytes, plan::HostProfile& profile) {
  // The pool stays below what the neediest op takes, which is there for the taking. Slots of each kind are
  // three times what it holds, so that none is still held when its turn comes again.
  const std::int64_t capacity = std::max(work_bytes / 4 * 3, 64 * kPlacedAlignment);
  LongVector<std::int64_t> slots;
  const auto add = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t size = 3 * capacity / count * (count / 2 + i) / count;
      slots.push_back(std::max(size / kPlacedAlignment, std::int64_t{1}) * kPlacedAlignment);
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

}  // namespace penstock::measure
