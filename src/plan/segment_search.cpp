#include "plan/segment_search.h"

#include <algorithm>
#include <cmath>

#include "base/long_vector.h"
#include "plan/checkpoints.h"

namespace penstock::plan {

/// The droppable gaps that are no checkpoints, as indices.
LongVector<std::size_t> SegmentSearch::between_checkpoints(int segments) const {
  const SwapSet checkpoints = checkpoint_gaps(trials_.problem(), trials_.profile(), segments);
  LongVector<std::size_t> found;
  for (std::size_t i = 0; i < droppable_.size(); ++i) {
    if (!checkpoints.contains(droppable_[i].storage, droppable_[i].access)) found.push_back(i);
  }
  return found;
}

Trial SegmentSearch::drop_between_checkpoints(const Trial& start, int reserve) {
  PlanContest& contest = trials_.contest();
  Trial best = start;
  LongVector<std::size_t> best_gaps;
  std::size_t best_count = 0;
  const auto attempt = [&](const LongVector<std::size_t>& gaps, std::size_t count) {
    if (contest.is_done() || count == 0 || count > gaps.size()) return;
    Trial trial = trials_.fresh();
    trial.passing = start.passing;
    for (std::size_t i = 0; i < count; ++i) {
      trial.dropped.set(droppable_[gaps[i]].storage, droppable_[gaps[i]].access, 1);
    }
    trials_.run(trial);
    if (trial.seconds >= best.seconds) return;
    best = trial;
    best_gaps = gaps;
    best_count = count;
  };
  const bool is_small = contest.plans_left() >= 100;
  const std::size_t parts = is_small ? 8 : 3;
  // From a handful of segments to segments of a handful of ops.
  const double most = std::max(100.0, static_cast<double>(trials_.problem().ops.size()) / 24);
  const double ratio = is_small ? 1.5 : std::pow(most / 4, 1.0 / 5);
  for (double segments = 4; segments <= 1.001 * most && contest.plans_left() > reserve; segments *= ratio) {
    const LongVector<std::size_t> gaps = between_checkpoints(static_cast<int>(segments));
    for (std::size_t part = 1; part <= parts; ++part) attempt(gaps, gaps.size() * part / parts);
  }
  for (std::size_t step = best_gaps.size() / (2 * parts); step > 0 && contest.plans_left() > reserve / 2;
       step /= 2) {
    const std::size_t center = best_count;
    const LongVector<std::size_t> gaps(best_gaps.begin(),
                                       best_gaps.end());  // attempt() may replace the best
    attempt(gaps, center + step);
    if (center > step) attempt(gaps, center - step);
  }
  candidates_ = best_gaps.empty() ? between_checkpoints(16) : best_gaps;
  return best;
}

Trial SegmentSearch::climb(Trial trial) {
  const auto gain = [&](const Trial& of, std::size_t i) {
    const Droppable& gap = droppable_[candidates_[i]];
    const double swap_seconds = gap.write_seconds * of.prices.write[static_cast<std::size_t>(gap.from)] +
                                gap.read_seconds * of.prices.read[static_cast<std::size_t>(gap.to)];
    const bool dropped = of.dropped.contains(gap.storage, gap.access);
    return (dropped ? gap.seconds - swap_seconds : swap_seconds - gap.seconds) / gap.read_seconds;
  };
  trials_.improve(trial, candidates_.size(), 0, gain, [&](Trial& changed, std::size_t i) {
    const Droppable& gap = droppable_[candidates_[i]];
    changed.dropped.set(gap.storage, gap.access, changed.dropped.contains(gap.storage, gap.access) ? 0 : 1);
  });
  trials_.bid(trial, trials_.contest().plans_left());
  return trial;
}

}  // namespace penstock::plan
