#include "plan/tier_places.h"

#include <algorithm>

#include "base/long_vector.h"
#include "memory/pack.h"
#include "plan/walker.h"

namespace penstock::plan {
namespace {

class StayCollector : public PlanVisitor {
 public:
  StayCollector(const Problem& problem, const Plan& plan)
      : problem_(problem),
        last_(std::max<std::int64_t>(1, static_cast<std::int64_t>(plan.instructions.size())) - 1),
        open_(problem.storages.size()),
        walker_(problem, plan) {
    walker_.begin(*this);
    walker_.step(*this);
    for (std::size_t s = 0; s < open_.size(); ++s) close(static_cast<ir::StorageId>(s));
    std::stable_sort(stays_.begin(), stays_.end(),
                     [](const TierStay& a, const TierStay& b) { return a.storage < b.storage; });
  }

  void stands(const Standing& standing) {
    if (standing.on_tier) at(standing.storage) = {standing.storage, 0, last_};
  }
  void started(ir::StorageId storage, Transfer direction) {
    TierStay& stay = at(storage);
    if (problem_.storage(storage).carried) {
      stay = {storage, 0, last_};
    } else if (direction == Transfer::write) {
      close(storage);
      stay = {storage, now(), now()};
    } else {
      stay.last = now();
    }
  }
  void waited(ir::StorageId storage, Transfer /*direction*/) {
    if (!problem_.storage(storage).carried) at(storage).last = now();
  }

  LongVector<TierStay> take() { return std::move(stays_); }

 private:
  std::int64_t now() const { return static_cast<std::int64_t>(walker_.instruction()); }
  TierStay& at(ir::StorageId s) { return open_[static_cast<std::size_t>(s)]; }
  void close(ir::StorageId s) {
    if (at(s).storage != ir::kNone) stays_.push_back(at(s));
  }

  const Problem& problem_;
  std::int64_t last_;
  LongVector<TierStay> open_;  ///< by storage: the stay that may still go on; no storage: none yet
  LongVector<TierStay> stays_;
  Walker walker_;
};

}  // namespace

LongVector<TierStay> tier_stays(const Problem& problem, const Plan& plan) {
  return StayCollector(problem, plan).take();
}

std::int64_t tier_peak_bytes(const Problem& problem, std::span<const TierStay> stays) {
  std::int64_t end = 0;
  for (const TierStay& stay : stays) end = std::max(end, stay.last + 1);
  LongVector<std::int64_t> change(static_cast<std::size_t>(end) + 1, 0);
  for (const TierStay& stay : stays) {
    const std::int64_t bytes = place_bytes(problem.storage(stay.storage).size_bytes);
    change[static_cast<std::size_t>(stay.first)] += bytes;
    change[static_cast<std::size_t>(stay.last) + 1] -= bytes;
  }
  std::int64_t bytes = 0, peak = 0;
  for (const std::int64_t more : change) peak = std::max(peak, bytes += more);
  return peak;
}

TierPlaces place_on_tier(std::span<const SolvedProblem> plans, std::span<const std::int64_t> fixed) {
  std::size_t storages = fixed.size();
  std::int64_t end = 1;
  for (const SolvedProblem& solved : plans) {
    storages = std::max(storages, solved.problem->storages.size());
    end += static_cast<std::int64_t>(solved.plan->instructions.size()) + 1;
  }
  LongVector<std::int64_t> all_the_time(storages, 0);  // bytes of those that need their place always
  LongVector<PackInterval> intervals;
  std::int64_t begin = 0;
  for (const SolvedProblem& solved : plans) {
    const Problem& problem = *solved.problem;
    for (const TierStay& stay : tier_stays(problem, *solved.plan)) {
      const std::int64_t bytes = place_bytes(problem.storage(stay.storage).size_bytes);
      if (problem.storage(stay.storage).carried) {
        all_the_time[static_cast<std::size_t>(stay.storage)] = bytes;
      } else {
        intervals.push_back({stay.storage, begin + stay.first, begin + stay.last, bytes});
      }
    }
    for (std::size_t s = 0; s < fixed.size() && s < problem.storages.size(); ++s) {
      if (fixed[s] >= 0) all_the_time[s] = place_bytes(problem.storages[s].size_bytes);
    }
    begin += static_cast<std::int64_t>(solved.plan->instructions.size()) + 1;
  }
  for (std::size_t s = 0; s < storages; ++s) {
    if (all_the_time[s] > 0) intervals.push_back({static_cast<int>(s), 0, end - 1, all_the_time[s]});
  }
  Packing packing = pack(intervals, static_cast<int>(storages), fixed);
  return {std::move(packing.offsets), packing.arena_bytes};
}

}  // namespace penstock::plan
