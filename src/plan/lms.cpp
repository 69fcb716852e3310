#include <algorithm>
#include <functional>

#include "base/long_vector.h"
#include "plan/all_resident.h"
#include "plan/budget_error.h"
#include "plan/plan_builder.h"
#include "plan/policies.h"
#include "plan/retire_queue.h"

namespace penstock::plan {
namespace {

/// The uses of one storage that share one stay in memory: ops [first, last], read in from op `from` on.
struct Stay {
  std::int64_t from = 0, first = 0, last = 0;
  bool reads = false;  ///< brought in from the tier; otherwise the first op writes it
};

/// Splits the life of a storage at the gaps that the knobs want to be swapped. The first such gap is judged
/// by the threshold; behind it the tier has a copy, and what counts is which uses are near enough to share a
/// copy-in.
LongVector<Stay> stays_of(const StorageInfo& storage, const LmsOptions& knobs) {
  LongVector<Stay> stays;
  if (storage.accesses.empty()) return stays;
  const std::int64_t birth = storage.accesses.front().position;
  stays.push_back({birth, birth, birth, false});
  for (std::size_t i = 1; i < storage.accesses.size(); ++i) {
    const Access& access = storage.accesses[i];
    const std::int64_t limit = stays.size() == 1 ? knobs.threshold : knobs.groupby;
    if (access.position - stays.back().last <= limit || !storage.swappable) {
      stays.back().last = access.position;
      continue;
    }
    const std::int64_t from =
        access.reads ? std::max(stays.back().last + 1, access.position - knobs.ahead) : access.position;
    stays.push_back({from, access.position, access.position, access.reads});
  }
  return stays;
}

/// Peak memory if each copy-out were complete at once: the tuner's only measure.
std::int64_t simulate_memory(const Problem& problem, const LmsOptions& knobs) {
  LongVector<std::int64_t> change_bytes(problem.ops.size() + 1, 0);
  std::int64_t used_bytes = 0;
  for (const StorageInfo& storage : problem.storages) {
    if (storage.carried) {
      used_bytes += storage.footprint_bytes;
      continue;
    }
    for (const Stay& stay : stays_of(storage, knobs)) {
      change_bytes[static_cast<std::size_t>(stay.from)] += storage.footprint_bytes;
      change_bytes[static_cast<std::size_t>(stay.last) + 1] -= storage.footprint_bytes;
    }
  }
  std::int64_t peak_bytes = used_bytes;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    used_bytes += change_bytes[i];
    peak_bytes = std::max(peak_bytes, used_bytes + problem.ops[i].scratch_bytes[0]);
  }
  return peak_bytes;
}

/// The largest value in [low, high] for which `fits` holds; it holds for `low` and does so below any for
/// which it does.
std::int64_t largest(std::int64_t low, std::int64_t high, const std::function<bool(std::int64_t)>& fits) {
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

class LmsWalk {
 public:
  LmsWalk(const Problem& problem, const LmsOptions& knobs)
      : problem_(problem),
        builder_(begin_with_state_resident(problem)),
        retired_(problem, builder_),
        arrivals_(problem.ops.size()),
        departures_(problem.ops.size()) {
    for (std::size_t s = 0; s < problem.storages.size(); ++s) {
      if (problem.storages[s].carried) continue;
      const LongVector<Stay> stays = stays_of(problem.storages[s], knobs);
      for (std::size_t k = 0; k < stays.size(); ++k) {
        const auto storage = static_cast<ir::StorageId>(s);
        arrivals_[static_cast<std::size_t>(stays[k].from)].push_back({storage, stays[k].reads});
        const bool needed_again = k + 1 < stays.size() && stays[k + 1].reads;
        departures_[static_cast<std::size_t>(stays[k].last)].push_back({storage, needed_again});
      }
    }
  }

  Plan walk() {
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      for (const auto& [storage, reads] : arrivals_[i]) arrive(storage, reads);
      make_room(problem_.ops[i].scratch_bytes[0]);
      builder_.run(static_cast<ir::OpId>(i));
      for (const auto& [storage, needed_again] : departures_[i]) {
        if (needed_again) {
          retired_.add(storage);
        } else {
          if (builder_.pending(storage) != Transfer::none) builder_.wait(storage);
          builder_.release(storage);
        }
      }
    }
    while (!retired_.empty()) retired_.pop();
    end_with_state_resident(problem_, builder_);
    return builder_.finish("lms");
  }

 private:
  void make_room(std::int64_t bytes) {
    while (builder_.free_bytes() < bytes && !retired_.empty()) retired_.pop();
  }

  void arrive(ir::StorageId s, bool reads) {
    if (retired_.contains(s)) {
      retired_.recall(s);
      return;
    }
    make_room(problem_.storage(s).footprint_bytes);
    if (reads) {
      builder_.swap_in(s);
    } else {
      builder_.acquire(s);
    }
  }

  const Problem& problem_;
  PlanBuilder builder_;
  RetireQueue retired_;
  LongVector<LongVector<std::pair<ir::StorageId, bool>>> arrivals_, departures_;  ///< by op
};

/// Searches the largest threshold, then ahead, then groupby that fit; those that are given stay.
LmsOptions tune(const Problem& problem, const LmsOptions& given) {
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(problem.ops.size()));
  LmsOptions knobs;
  knobs.threshold = given.threshold > 0 ? given.threshold : 1;
  knobs.ahead = given.ahead > 0 ? given.ahead : 1;
  knobs.groupby = given.groupby > 0 ? given.groupby : 1;
  const std::int64_t needed_bytes = simulate_memory(problem, knobs);
  if (needed_bytes > problem.budget_bytes) throw BudgetError("lms", needed_bytes, problem.budget_bytes);
  const auto raise = [&](std::int64_t LmsOptions::*knob) {
    knobs.*knob = largest(knobs.*knob, most, [&](std::int64_t value) {
      LmsOptions tried = knobs;
      tried.*knob = value;
      return simulate_memory(problem, tried) <= problem.budget_bytes;
    });
  };
  if (given.threshold <= 0) raise(&LmsOptions::threshold);
  if (given.ahead <= 0) raise(&LmsOptions::ahead);
  if (given.groupby <= 0) raise(&LmsOptions::groupby);
  return knobs;
}

}  // namespace

LmsOptions tune_lms(const Problem& problem, const LmsOptions& given) {
  return tune(problem, given);
}

Plan plan_lms(const Problem& problem, const LmsOptions& options) {
  return LmsWalk(problem, tune(problem, options)).walk();
}

}  // namespace penstock::plan
