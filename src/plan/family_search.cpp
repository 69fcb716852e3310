#include "plan/family_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

using Words = const ir::Name::Words*;

/// A round that gained less than this part of the step is the last.
constexpr double kLeastGain = 0.002;
/// How often prices settle anew before each round.
constexpr int kBids = 8;

/// What the storage's last writer before this use made is called.
Words value_words(const Problem& problem, const Droppable& gap) {
  Words words = nullptr;
  for (const ir::OpId op : {gap.from, gap.to}) {
    for (const auto& tensors : {problem.graph->op(op).outputs, problem.graph->op(op).inputs}) {
      for (const ir::TensorId t : tensors) {
        if (words == nullptr && problem.graph->tensor(t).storage == gap.storage)
          words = problem.graph->tensor(t).name.words();
      }
    }
  }
  return words;
}

}  // namespace

FamilySearch::FamilySearch(Trials& trials, const LongVector<Droppable>& droppable)
    : trials_(trials), droppable_(droppable) {
  const Problem& problem = trials.problem();
  // Addresses are keys only: families are numbered in the order in which they are met.
  std::map<std::tuple<Words, Words, Words>, std::size_t> gap_numbers;
  std::map<Words, std::size_t> value_numbers;
  LongVector<std::uint8_t> known(problem.storages.size(), 0);
  for (std::size_t i = 0; i < droppable.size(); ++i) {
    const Droppable& gap = droppable[i];
    const Words value = value_words(problem, gap);
    const auto key =
        std::tuple(value, problem.graph->op(gap.from).name.words(), problem.graph->op(gap.to).name.words());
    const std::size_t number = gap_numbers.emplace(key, gap_families_.size()).first->second;
    if (number == gap_families_.size()) gap_families_.emplace_back();
    gap_families_[number].gaps.push_back(i);
    gap_families_[number].storages.push_back(gap.storage);
    if (known[static_cast<std::size_t>(gap.storage)]++ != 0) continue;
    const std::size_t of_value = value_numbers.emplace(value, value_families_.size()).first->second;
    if (of_value == value_families_.size()) value_families_.emplace_back();
    value_families_[of_value].storages.push_back(gap.storage);
  }
}

/// What dropping all of the family that is not dropped would save in transfers, less the time to make it.
double FamilySearch::drop_gain(const Trial& trial, const Family& family) const {
  double gain = 0;
  for (const std::size_t i : family.gaps) {
    const Droppable& gap = droppable_[i];
    if (trial.dropped.contains(gap.storage, gap.access)) continue;
    gain += gap.write_seconds * trial.prices.write[static_cast<std::size_t>(gap.from)] +
            gap.read_seconds * trial.prices.read[static_cast<std::size_t>(gap.to)] - gap.seconds;
  }
  return gain;
}

LongVector<FamilySearch::Move> FamilySearch::moves(const Trial& trial) const {
  LongVector<Move> found;
  for (std::size_t f = 0; f < gap_families_.size(); ++f) {
    const Family& family = gap_families_[f];
    const double dropped = drop_gain(trial, family);
    if (dropped > 0) found.push_back({dropped, f, Change::drop});
    double again = 0;
    for (const std::size_t i : family.gaps) {
      const Droppable& gap = droppable_[i];
      if (trial.dropped.contains(gap.storage, gap.access))
        again += trial.again_seconds[static_cast<std::size_t>(gap.storage)];
    }
    if (again > 0) found.push_back({again, f, Change::restore});
  }
  for (std::size_t f = 0; f < value_families_.size(); ++f) {
    double lost = 0, again = 0;
    for (const ir::StorageId s : value_families_[f].storages) {
      lost += trial.lost_seconds[static_cast<std::size_t>(s)];
      again += trial.again_seconds[static_cast<std::size_t>(s)];
    }
    const auto first = static_cast<std::size_t>(value_families_[f].storages.front());
    const OnTheWay how = trial.passing.empty() ? OnTheWay::by_rule : trial.passing[first];
    if (lost > 0 && how != OnTheWay::held) found.push_back({lost, f, Change::hold});
    if (again > 0 && how != OnTheWay::passes) found.push_back({again - lost, f, Change::pass});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Move& a, const Move& b) { return a.gain_seconds > b.gain_seconds; });
  return found;
}

void FamilySearch::apply(const Move& move, Trial& trial) const {
  if (move.change == Change::drop || move.change == Change::restore) {
    for (const std::size_t i : gap_families_[move.family].gaps)
      trial.dropped.set(droppable_[i].storage, droppable_[i].access, move.change == Change::drop ? 1 : 0);
    return;
  }
  if (trial.passing.empty()) trial.passing.assign(trials_.problem().storages.size(), OnTheWay::by_rule);
  for (const ir::StorageId s : value_families_[move.family].storages)
    trial.passing[static_cast<std::size_t>(s)] =
        move.change == Change::hold ? OnTheWay::held : OnTheWay::passes;
}

/// Plans it, and takes it for the best if it is, with the prices that it was planned at.
void FamilySearch::run(Trial& changed, Trial& best) {
  const TransferPrices prices = changed.prices;
  trials_.run(changed);
  if (changed.seconds >= best.seconds) return;
  best = changed;
  best.prices = prices;
}

void FamilySearch::search(Trial& trial) {
  PlanContest& contest = trials_.contest();
  // The prices that a trial brings are those that followed from its plan, not those that it was planned at.
  Trial best = trial;
  best.seconds = std::numeric_limits<double>::infinity();
  for (double before = 0; !contest.is_done();) {
    Trial last = best;
    for (int round = 0; round < kBids && !contest.is_done(); ++round) run(last, best);
    if (best.seconds > (1 - kLeastGain) * before && before > 0) break;
    before = best.seconds;
    for (const Move& move : moves(best)) {
      if (contest.is_done()) break;
      Trial changed = best;
      apply(move, changed);
      run(changed, best);
    }
  }
  if (best.seconds < trial.seconds) trial = std::move(best);
}

}  // namespace penstock::plan
