#include "plan/race.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

constexpr int kHeatRounds = 8;

struct Runner {
  Trial last, best;
};

}  // namespace

Trial race(Trials& trials, const LongVector<Droppable>& droppable, int rounds) {
  const Problem& problem = trials.problem();
  PlanContest& contest = trials.contest();
  const Step step(problem);
  GapMap<double> recompute_seconds(problem, std::numeric_limits<double>::infinity());
  const auto price_sources = [&](const TransferPrices& prices) {
    for (const Droppable& gap : droppable) {
      const double read_price = prices.read[static_cast<std::size_t>(gap.to)];
      recompute_seconds.set(gap.storage, gap.access, gap.seconds + gap.source_seconds * read_price);
    }
  };
  LongVector<Runner> runners;
  for (const auto& passing : passing_sets(problem, droppable)) {
    Trial trial = trials.fresh();
    trial.passing = passing;
    runners.push_back({trial, trial});
  }
  const auto is_faster = [](const Runner& a, const Runner& b) { return a.best.seconds < b.best.seconds; };
  for (int heat = 2 * kHeatRounds; rounds > 0 && !contest.is_done(); heat = kHeatRounds) {
    for (Runner& runner : runners) {
      for (int round = 0; round < heat && !contest.is_done(); ++round, --rounds) {
        Trial& last = runner.last;
        price_sources(last.prices);
        last.dropped = choose_evictions(step, trials.profile(), last.prices, &recompute_seconds).dropped;
        trials.run(last);
        if (last.seconds < runner.best.seconds) runner.best = last;
      }
    }
    std::stable_sort(runners.begin(), runners.end(), is_faster);
    runners.erase(runners.begin() + static_cast<std::ptrdiff_t>((runners.size() + 1) / 2), runners.end());
  }
  return std::move(runners.front().best);
}

}  // namespace penstock::plan
