#include "plan/auto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "plan/budget_error.h"
#include "plan/checkpoints.h"
#include "plan/evictions.h"
#include "plan/plan_contest.h"
#include "plan/policies.h"
#include "plan/polish.h"
#include "plan/price_update.h"
#include "plan/reruns.h"

namespace penstock::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kFloorPrice = 0.02;
/// The search's work: so many ops planned in all, but no fewer plans than this. A plan takes time in
/// proportion to its ops, so the whole does as well.
constexpr int kPlannedOps = 260000;
constexpr int kFewestPlans = 48;
/// So many plans at most before what was found is polished.
constexpr int kSearchPlans = 400;
/// Values of at least these parts of the memory pass, in one trial or another.
constexpr std::int64_t kPassingParts[] = {6, 10, 20};
constexpr int kHeatRounds = 8;

/// A gap from forward to backward whose value can be made anew.
struct Droppable {
  ir::StorageId storage = ir::kNone;
  std::size_t access = 0;
  double seconds = 0;        ///< to make it anew
  double least_seconds = 0;  ///< even if all that it takes is made anew as well
  double write_seconds = 0;  ///< to swap it instead
  double read_seconds = 0;
  Position from = ir::kNone, to = ir::kNone;  ///< its two uses
};

/// What to compute again, at which prices the rest is swapped, and how long the step takes then.
struct Trial {
  SwapSet dropped;
  TransferPrices prices;
  /// By storage: values that are not held when they are made on the way to another, but made once more for
  /// their own next use. Empty: none.
  std::vector<std::uint8_t> passing = {};
  double seconds = kNever;
  std::vector<double> lost_seconds = {};  ///< by storage that passes: making it more than once
};

class Search {
 public:
  Search(const Problem& problem, const Profile& profile, const AutoOptions& options)
      : problem_(problem),
        profile_(profile),
        recompute_(options.recompute),
        all_plans_(std::min(options.max_plans, std::max(kFewestPlans, kPlannedOps / (size_of(problem) + 1)))),
        contest_(problem, profile, std::min(all_plans_, kSearchPlans)),
        recomputer_(problem) {}

  Plan search() {
    try_policy([&] { return plan_window(problem_); });
    try_policy([&] { return plan_lms(problem_); });
    try_policy([&] { return plan_superneurons(problem_); });
    try_policy([&] { return plan_pooch(problem_, profile_); });
    if (!problem_.boundary) {
      Trial trial{SwapSet(problem_), floor_prices()};
      const int most = recompute_ ? contest_.plans_left() / 12 : contest_.plans_left();
      bid(trial, most);
      if (recompute_) {
        find_droppable();
        Trial joint = race(contest_.plans_left() * 2 / 5);
        hold_passing(joint, contest_.plans_left() / 4);
        trial.passing = joint.passing;
        Trial segmented = drop_between_checkpoints(trial, contest_.plans_left() / 2);
        hold_passing(segmented, contest_.plans_left() / 4);
        climb(joint.seconds < segmented.seconds ? joint : segmented);
      }
      contest_.allow(std::max(0, contest_.plans_left()) +
                     std::max(all_plans_ / 8, all_plans_ - kSearchPlans));
      if (recompute_) drop_all_sets(contest_.plans_left() / 2);
      if (made_) polish(contest_, std::move(*made_));
    }
    if (!contest_.has_best()) throw BudgetError("auto", smallest_bytes(problem_), problem_.budget_bytes);
    Plan best = contest_.take_best();
    best.policy = "auto";
    return best;
  }

 private:
  static int size_of(const Problem& problem) { return static_cast<int>(problem.ops.size()); }
  bool is_done() const { return contest_.is_done(); }

  TransferPrices floor_prices() const {
    return {std::vector<double>(problem_.ops.size(), kFloorPrice),
            std::vector<double>(problem_.ops.size(), kFloorPrice)};
  }

  template <typename Make>
  void try_policy(const Make& make) {
    if (is_done()) return;
    try {
      contest_.consider(make());
    } catch (const BudgetError&) {
      // Another policy may do with less.
    }
  }

  /// Plans the trial and fills in its time; its prices become those that follow from where that plan stalls.
  void run(Trial& trial) {
    trial.seconds = kNever;
    const std::vector<Rerun> reruns =
        recomputer_.reruns(trial.dropped, trial.passing.empty() ? nullptr : &trial.passing);
    const Problem longer = with_reruns(problem_, reruns, true);
    const SwapSet swaps = choose_evictions(longer, profile_, trial.prices, nullptr).swapped;
    const std::optional<Simulation> simulation = contest_.consider(longer, swaps, WriteStart::at_gap);
    if (!simulation) return;
    trial.seconds = simulation->step_seconds;
    if (!made_ || trial.seconds < made_->seconds) {
      made_ = Made{longer, swaps, WriteStart::at_gap, trial.seconds};
    }
    update_prices(*simulation, trial.prices);
    trial.lost_seconds = lost_seconds(reruns);
  }

  std::vector<double> lost_seconds(const std::vector<Rerun>& reruns) const {
    std::vector<double> lost(problem_.storages.size(), 0);
    std::vector<bool> seen(problem_.ops.size(), false);
    for (const Rerun& rerun : reruns) {
      if (!seen[static_cast<std::size_t>(rerun.op)]) {
        seen[static_cast<std::size_t>(rerun.op)] = true;
        continue;
      }
      for (const ir::TensorId output : problem_.graph->op(rerun.op).outputs) {
        lost[static_cast<std::size_t>(problem_.graph->tensor(output).storage)] += profile_.seconds(rerun.op);
      }
    }
    return lost;
  }

  /// Runs it again and again as prices settle; leaves the best.
  void bid(Trial& trial, int rounds) {
    Trial last = trial;
    for (int round = 0; round < rounds && !is_done(); ++round) {
      run(last);
      if (last.seconds == kNever) return;
      if (last.seconds < trial.seconds) trial = last;
    }
  }

  void find_droppable() {
    const auto is_backward = [&](const Access& access) {
      return problem_.graph->op(access.position).phase == ir::Phase::backward;
    };
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const auto storage = static_cast<ir::StorageId>(s);
      const StorageInfo& info = problem_.storages[s];
      for (std::size_t k = 0; k + 1 < info.accesses.size(); ++k) {
        if (!is_needed_after(info, k) || is_backward(info.accesses[k]) || !is_backward(info.accesses[k + 1]))
          continue;
        const std::vector<ir::OpId> ops = recomputer_.chain(storage, k);
        if (ops.empty()) continue;
        Droppable gap{storage,
                      k,
                      0,
                      profile_.seconds(ops.back()),
                      0,
                      0,
                      info.accesses[k].position,
                      info.accesses[k + 1].position};
        for (const ir::OpId op : ops) gap.seconds += profile_.seconds(op);
        gap.write_seconds = static_cast<double>(info.size_bytes) / profile_.tier.write_bandwidth;
        gap.read_seconds = static_cast<double>(info.size_bytes) / profile_.tier.read_bandwidth;
        droppable_.push_back(gap);
      }
    }
    // The cheapest for the transfers they save first.
    std::stable_sort(droppable_.begin(), droppable_.end(), [](const Droppable& a, const Droppable& b) {
      return a.seconds * b.read_seconds < b.seconds * a.read_seconds;
    });
  }

  /// Sets of values that may pass: none, and those that take a large part of the memory.
  std::vector<std::vector<std::uint8_t>> passing_sets() const {
    std::vector<std::vector<std::uint8_t>> sets(1);
    for (const std::int64_t part : kPassingParts) {
      std::vector<std::uint8_t> passing(problem_.storages.size(), 0);
      bool any = false;
      for (const Droppable& gap : droppable_) {
        if (problem_.storage(gap.storage).footprint_bytes < problem_.budget_bytes / part) continue;
        passing[static_cast<std::size_t>(gap.storage)] = 1;
        any = true;
      }
      if (any && passing != sets.back()) sets.push_back(std::move(passing));
    }
    return sets;
  }

  /// Lets swapping and recomputing compete for each gap as prices settle, and ways to pass with each other:
  /// the slower half is given up time and again.
  Trial race(int rounds) {
    GapMap<double> recompute_seconds(problem_, kNever);
    for (const Droppable& gap : droppable_) recompute_seconds.set(gap.storage, gap.access, gap.seconds);
    struct Runner {
      Trial last, best;
    };
    std::vector<Runner> runners;
    for (const auto& passing : passing_sets()) {
      const Trial trial{SwapSet(problem_), floor_prices(), passing};
      runners.push_back({trial, trial});
    }
    const auto is_faster = [](const Runner& a, const Runner& b) { return a.best.seconds < b.best.seconds; };
    for (int heat = 2 * kHeatRounds; rounds > 0 && !is_done(); heat = kHeatRounds) {
      for (Runner& runner : runners) {
        for (int round = 0; round < heat && !is_done(); ++round, --rounds) {
          Trial& last = runner.last;
          last.dropped = choose_evictions(problem_, profile_, last.prices, &recompute_seconds).dropped;
          run(last);
          if (last.seconds < runner.best.seconds) runner.best = last;
        }
      }
      std::stable_sort(runners.begin(), runners.end(), is_faster);
      runners.erase(runners.begin() + static_cast<std::ptrdiff_t>((runners.size() + 1) / 2), runners.end());
    }
    return std::move(runners.front().best);
  }

  /// The droppable gaps that are no checkpoints, as indices.
  std::vector<std::size_t> between_checkpoints(int segments) const {
    const SwapSet checkpoints = checkpoint_gaps(problem_, profile_, segments);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < droppable_.size(); ++i) {
      if (!checkpoints.contains(droppable_[i].storage, droppable_[i].access)) found.push_back(i);
    }
    return found;
  }

  /// Drops what can be computed again between checkpoints: more or fewer checkpoints, more or less of what
  /// lies between.
  Trial drop_between_checkpoints(const Trial& start, int reserve) {
    Trial best = start;
    std::vector<std::size_t> best_gaps;
    std::size_t best_count = 0;
    const auto attempt = [&](const std::vector<std::size_t>& gaps, std::size_t count) {
      if (is_done() || count == 0 || count > gaps.size()) return;
      Trial trial{SwapSet(problem_), floor_prices(), start.passing};
      for (std::size_t i = 0; i < count; ++i) {
        trial.dropped.set(droppable_[gaps[i]].storage, droppable_[gaps[i]].access, 1);
      }
      run(trial);
      if (trial.seconds >= best.seconds) return;
      best = trial;
      best_gaps = gaps;
      best_count = count;
    };
    const bool is_small = contest_.plans_left() >= 100;
    const std::size_t parts = is_small ? 8 : 3;
    // From a handful of segments to segments of a handful of ops.
    const double most = std::max(100.0, static_cast<double>(problem_.ops.size()) / 24);
    const double ratio = is_small ? 1.5 : std::pow(most / 4, 1.0 / 5);
    for (double segments = 4; segments <= 1.001 * most && contest_.plans_left() > reserve;
         segments *= ratio) {
      const std::vector<std::size_t> gaps = between_checkpoints(static_cast<int>(segments));
      for (std::size_t part = 1; part <= parts; ++part) attempt(gaps, gaps.size() * part / parts);
    }
    for (std::size_t step = best_gaps.size() / (2 * parts); step > 0 && contest_.plans_left() > reserve / 2;
         step /= 2) {
      const std::size_t center = best_count;
      const std::vector<std::size_t> gaps(best_gaps.begin(),
                                          best_gaps.end());  // attempt() may replace the best
      attempt(gaps, center + step);
      if (center > step) attempt(gaps, center - step);
    }
    candidates_ = best_gaps.empty() ? between_checkpoints(16) : best_gaps;
    return best;
  }

  /// Every set of values to be made anew, where there are few: by the bits of a number.
  void drop_all_sets(int most_plans) {
    if (droppable_.size() > 12 || most_plans < 1 << droppable_.size()) return;
    for (std::uint32_t bits = 0; bits < 1U << droppable_.size() && !is_done(); ++bits) {
      Trial trial{SwapSet(problem_), floor_prices()};
      double rerun_seconds = 0;
      for (std::size_t i = 0; i < droppable_.size(); ++i) {
        if ((bits >> i & 1U) == 0) continue;
        trial.dropped.set(droppable_[i].storage, droppable_[i].access, 1);
        rerun_seconds += droppable_[i].least_seconds;
      }
      if (contest_.compute_seconds() + rerun_seconds < contest_.best_seconds()) run(trial);
    }
  }

  /// Makes those of `count` changes that gain most by `gain`, many at once, fewer if that fails, as long as
  /// there are any that promise a gain and more than `reserve` plans are left.
  template <typename Gain, typename Change>
  void improve(Trial& trial, std::size_t count, int reserve, const Gain& gain, const Change& change) {
    std::vector<std::uint8_t> refused(count, 0);
    std::size_t batch = 16;
    while (!is_done() && contest_.plans_left() > reserve) {
      std::vector<std::pair<double, std::size_t>> gains;
      for (std::size_t i = 0; i < count; ++i) {
        const double gained = refused[i] != 0 ? 0 : gain(trial, i);
        if (gained > 0) gains.emplace_back(-gained, i);
      }
      if (gains.empty()) return;
      std::sort(gains.begin(), gains.end());
      Trial changed = trial;
      const std::size_t changes = std::min(batch, gains.size());
      for (std::size_t i = 0; i < changes; ++i) change(changed, gains[i].second);
      run(changed);
      if (changed.seconds < trial.seconds) {
        trial = changed;
        batch = std::min<std::size_t>(64, 2 * batch);
      } else if (changes > 1) {
        batch = changes / 2;
      } else {
        refused[gains.front().second] = 1;
        batch = 4;
      }
    }
  }

  /// Holds values after all that would be made time and again because they pass.
  void hold_passing(Trial& trial, int most_plans) {
    if (trial.passing.empty()) return;
    const auto gain = [&](const Trial& of, std::size_t s) {
      return of.passing[s] != 0 ? of.lost_seconds[s] : 0;
    };
    improve(trial, trial.passing.size(), contest_.plans_left() - most_plans, gain,
            [](Trial& changed, std::size_t s) { changed.passing[s] = 0; });
  }

  /// Changes the mind about gaps where the other choice looks cheaper at the trial's prices.
  void climb(Trial trial) {
    const auto gain = [&](const Trial& of, std::size_t i) {
      const Droppable& gap = droppable_[candidates_[i]];
      const double swap_seconds = gap.write_seconds * of.prices.write[static_cast<std::size_t>(gap.from)] +
                                  gap.read_seconds * of.prices.read[static_cast<std::size_t>(gap.to)];
      const bool dropped = of.dropped.contains(gap.storage, gap.access);
      return (dropped ? gap.seconds - swap_seconds : swap_seconds - gap.seconds) / gap.read_seconds;
    };
    improve(trial, candidates_.size(), 0, gain, [&](Trial& changed, std::size_t i) {
      const Droppable& gap = droppable_[candidates_[i]];
      changed.dropped.set(gap.storage, gap.access, changed.dropped.contains(gap.storage, gap.access) ? 0 : 1);
    });
    bid(trial, contest_.plans_left());
  }

  const Problem& problem_;
  const Profile& profile_;
  bool recompute_;
  int all_plans_;
  PlanContest contest_;
  Recomputer recomputer_;
  std::optional<Made> made_;  ///< the best that was made here
  std::vector<Droppable> droppable_;
  std::vector<std::size_t> candidates_;  ///< of droppable_: between the checkpoints that were best
};

}  // namespace

Plan plan_auto(const Problem& problem, const Profile& profile, const AutoOptions& options) {
  if (keep_bytes(problem) <= problem.budget_bytes) {
    Plan plan = plan_keep(problem);
    plan.policy = "auto";
    return plan;
  }
  const std::int64_t needed_bytes = smallest_bytes(problem);
  if (needed_bytes > problem.budget_bytes) throw BudgetError("auto", needed_bytes, problem.budget_bytes);
  return Search(problem, profile, options).search();
}

}  // namespace penstock::plan
