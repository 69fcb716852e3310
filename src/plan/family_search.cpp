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
constexpr double kLeastGain = 0.005;
/// How often prices settle anew before each round.
constexpr int kBids = 8;
/// Into so many parts families are cut at last.
constexpr std::size_t kMostParts = 2;

/// What the value in the gap is called, which the op behind it reads.
Words value_words(const Problem& problem, const Droppable& gap) {
  for (const ir::TensorId t : problem.graph->op(gap.to).inputs) {
    const ir::Tensor& tensor = problem.graph->tensor(t);
    if (tensor.storage == gap.storage) return tensor.name.words();
  }
  return nullptr;
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
    gap_families_[number].push_back(i);
    if (known[static_cast<std::size_t>(gap.storage)]++ != 0) continue;
    const std::size_t of_value = value_numbers.emplace(value, value_families_.size()).first->second;
    if (of_value == value_families_.size()) value_families_.emplace_back();
    value_families_[of_value].push_back(gap.storage);
  }
  for (Gaps& gaps : gap_families_) {
    std::stable_sort(gaps.begin(), gaps.end(),
                     [&](std::size_t a, std::size_t b) { return droppable[a].from < droppable[b].from; });
  }
  for (Values& values : value_families_) std::sort(values.begin(), values.end());
}

/// Dropping all that are not dropped would save transfers, less the time to make them; not dropping any would
/// save the time that making them anew takes now.
void FamilySearch::add_gap_moves(const Trial& trial, std::span<const std::size_t> gaps,
                                 LongVector<Move>& found) const {
  double saved = 0, again = 0;
  for (const std::size_t i : gaps) {
    const Droppable& gap = droppable_[i];
    if (trial.dropped.contains(gap.storage, gap.access)) {
      again += trial.again_seconds[static_cast<std::size_t>(gap.storage)];
    } else {
      saved += gap.write_seconds * trial.prices.write[static_cast<std::size_t>(gap.from)] +
               gap.read_seconds * trial.prices.read[static_cast<std::size_t>(gap.to)] - gap.seconds;
    }
  }
  if (saved > 0) found.push_back({saved, Change::drop, gaps, {}});
  if (again > 0) found.push_back({again, Change::restore, gaps, {}});
}

void FamilySearch::add_value_moves(const Trial& trial, std::span<const ir::StorageId> values,
                                   LongVector<Move>& found) const {
  double lost = 0, again = 0;
  for (const ir::StorageId s : values) {
    lost += trial.lost_seconds[static_cast<std::size_t>(s)];
    again += trial.again_seconds[static_cast<std::size_t>(s)];
  }
  const auto first = static_cast<std::size_t>(values.front());
  const OnTheWay how = trial.passing.empty() ? OnTheWay::by_rule : trial.passing[first];
  if (lost > 0 && how != OnTheWay::held) found.push_back({lost, Change::hold, {}, values});
  if (again > 0 && how != OnTheWay::passes) found.push_back({again - lost, Change::pass, {}, values});
}

LongVector<FamilySearch::Move> FamilySearch::moves(const Trial& trial, std::size_t parts) const {
  LongVector<Move> found;
  const auto for_each_part = [&](const auto& family, const auto& add) {
    const std::size_t count = std::min(parts, family.size());
    for (std::size_t part = 0; part < count && (parts == 1 || family.size() > parts / 2); ++part) {
      const std::size_t first = family.size() * part / count, end = family.size() * (part + 1) / count;
      add(std::span(family).subspan(first, end - first));
    }
  };
  for (const Gaps& family : gap_families_)
    for_each_part(family, [&](std::span<const std::size_t> gaps) { add_gap_moves(trial, gaps, found); });
  for (const Values& family : value_families_)
    for_each_part(family,
                  [&](std::span<const ir::StorageId> values) { add_value_moves(trial, values, found); });
  std::stable_sort(found.begin(), found.end(),
                   [](const Move& a, const Move& b) { return a.gain_seconds > b.gain_seconds; });
  return found;
}

void FamilySearch::apply(const Move& move, Trial& trial) const {
  for (const std::size_t i : move.gaps)
    trial.dropped.set(droppable_[i].storage, droppable_[i].access, move.change == Change::drop ? 1 : 0);
  if (move.values.empty()) return;
  if (trial.passing.empty()) trial.passing.assign(trials_.problem().storages.size(), OnTheWay::by_rule);
  for (const ir::StorageId s : move.values)
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

/// Lets prices settle anew.
void FamilySearch::bid(Trial& best) {
  Trial last = best;
  for (int round = 0; round < kBids && !trials_.contest().is_done(); ++round) run(last, best);
}

void FamilySearch::search(Trial& trial) {
  PlanContest& contest = trials_.contest();
  // The prices that a trial brings are those that followed from its plan, not those that it was planned at.
  Trial best = trial;
  best.seconds = std::numeric_limits<double>::infinity();
  bid(best);
  for (std::size_t parts = 1; parts <= kMostParts && !contest.is_done();) {
    const double before = best.seconds;
    for (const Move& move : moves(best, parts)) {
      if (contest.is_done()) break;
      Trial changed = best;
      apply(move, changed);
      run(changed, best);
    }
    bid(best);
    if (best.seconds > (1 - kLeastGain) * before) parts *= 2;
  }
  if (best.seconds < trial.seconds) trial = std::move(best);
}

}  // namespace penstock::plan
