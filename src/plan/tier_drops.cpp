#include "plan/tier_drops.h"

#include <algorithm>

#include "base/long_vector.h"
#include "plan/memory_curve.h"
#include "plan/tier_places.h"

namespace penstock::plan {
TierDrops::TierDrops(const Problem& problem, const Plan& swapping, const LongVector<Droppable>& droppable,
                     Recomputer& recomputer)
    : problem_(problem), taken_(swapping.instructions.size() + 1, 0) {
  const LongVector<TierStay> stays = tier_stays(problem, swapping);
  LongVector<std::size_t> first_stay(problem.storages.size() + 1, 0);
  for (const TierStay& stay : stays) {
    ++first_stay[static_cast<std::size_t>(stay.storage) + 1];
    const std::int64_t bytes = place_bytes(problem.storage(stay.storage).size_bytes);
    taken_[static_cast<std::size_t>(stay.first)] += bytes;
    taken_[static_cast<std::size_t>(stay.last) + 1] -= bytes;
  }
  for (std::size_t s = 1; s < first_stay.size(); ++s) first_stay[s] += first_stay[s - 1];
  for (std::size_t i = 1; i < taken_.size(); ++i) taken_[i] += taken_[i - 1];
  peak_bytes_ = *std::max_element(taken_.begin(), taken_.end());
  LongVector<std::int64_t> run(problem.ops.size(), -1);
  for (std::size_t i = 0; i < swapping.instructions.size(); ++i) {
    const Instruction& in = swapping.instructions[i];
    if (in.action != Action::run) continue;
    std::int64_t& first = run[static_cast<std::size_t>(in.id)];
    if (first < 0) first = static_cast<std::int64_t>(i);
  }
  for (const Droppable& gap : droppable) {
    const auto s = static_cast<std::size_t>(gap.storage);
    const std::int64_t from = run[static_cast<std::size_t>(gap.from)] + 1;
    const std::int64_t to = run[static_cast<std::size_t>(gap.to)] - 1;
    for (std::size_t i = first_stay[s]; i < first_stay[s + 1]; ++i) {
      Candidate candidate{gap.storage,
                          gap.access,
                          place_bytes(problem.storages[s].size_bytes),
                          std::max(stays[i].first, from),
                          std::min(stays[i].last, to),
                          {}};
      if (candidate.first > candidate.last) continue;
      candidate.made_of = sources_of(problem, recomputer.chain(gap.storage, gap.access));
      candidates_.push_back(std::move(candidate));
      break;
    }
  }
}

SwapSet TierDrops::within(std::int64_t space_bytes) const {
  SwapSet chosen(problem_);
  MemoryCurve taken(taken_.size());
  taken.add_all(taken_);
  LongVector<std::uint8_t> dropped(problem_.storages.size(), 0), needed = dropped;
  for (const bool whatever : {false, true}) {
    for (const Candidate& candidate : candidates_) {
      const auto s = static_cast<std::size_t>(candidate.storage);
      if (chosen.contains(candidate.storage, candidate.access) ||
          taken.max(candidate.first, candidate.last) <= space_bytes)
        continue;
      const bool apart = needed[s] == 0 && std::none_of(candidate.made_of.begin(), candidate.made_of.end(),
                                                        [&](ir::StorageId of) {
                                                          return dropped[static_cast<std::size_t>(of)] != 0;
                                                        });
      if (!apart && !whatever) continue;
      chosen.set(candidate.storage, candidate.access, 1);
      taken.add(candidate.first, candidate.last, -candidate.bytes);
      dropped[s] = 1;
      for (const ir::StorageId of : candidate.made_of) needed[static_cast<std::size_t>(of)] = 1;
    }
  }
  return chosen;
}

}  // namespace penstock::plan
