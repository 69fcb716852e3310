#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/random_step.h"

namespace penstock::plan {

/// Does something to a plan, for tests of whoever must notice.
class Damage {
 public:
  /// All must outlive it.
  Damage(const Problem& problem, Plan& plan, Dice& dice)
      : problem_(problem), list_(plan.instructions), plan_(plan), dice_(dice) {}

  /// One thing, and what it was.
  std::string any() {
    switch (dice_.below(9)) {
      case 8:
        return other_place();
      case 0:
        return other_variant();
      case 1:
        return other_exchange();
      case 2:
        return dice_.one_in(2) ? brought_back() : brought_back_elsewhere();
      default:
        return simple();
    }
  }

  /// Instructions that are lost, exchanged or moved, other storages, another boundary.
  std::string simple() {
    const std::size_t i = anywhere(), j = anywhere();
    if (list_[i].action == Action::adopt && dice_.one_in(2)) {
      list_[i].from = dice_.one_in(2) ? list_[j].id : list_[j].from;
      return "another storage is adopted at " + std::to_string(i);
    }
    switch (dice_.below(plan_.boundary.empty() ? 4 : 5)) {
      case 0:
        list_.erase(at(i));
        return "without " + std::to_string(i);
      case 1:
        std::swap(list_[i], list_[j]);
        return std::to_string(i) + " and " + std::to_string(j) + " exchanged";
      case 2:
        std::swap(list_[i], list_[std::min(i + 1, list_.size() - 1)]);
        return std::to_string(i) + " after its next";
      case 3: {
        const Instruction moved = list_[i];
        list_.erase(at(i));
        list_.insert(at(std::min(j, list_.size())), moved);
        return std::to_string(i) + " moved to " + std::to_string(j);
      }
      default: {
        Standing& changed = plan_.boundary[static_cast<std::size_t>(
            dice_.below(static_cast<std::int64_t>(plan_.boundary.size())))];
        changed.resident ^= dice_.one_in(2);
        changed.on_tier ^= dice_.one_in(2);
        changed.pending = static_cast<Transfer>(dice_.below(3));
        return "where storage " + std::to_string(changed.storage) + " stands";
      }
    }
  }

  /// A storage lies elsewhere on the tier: where another does, or a page further.
  std::string other_place() {
    LongVector<std::size_t> placed;
    for (std::size_t s = 0; s < plan_.places.size(); ++s) {
      if (plan_.places[s] >= 0) placed.push_back(s);
    }
    if (placed.size() < 2) return simple();
    const auto pick = [&] {
      return placed[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(placed.size())))];
    };
    const std::size_t s = pick();
    plan_.places[s] = dice_.one_in(3) ? plan_.places[s] + kTierGrain : plan_.places[pick()];
    return "another place of storage " + std::to_string(s);
  }

  /// An op, or one run of several, has another kernel.
  std::string other_variant() {
    const std::size_t i = find_run([&](ir::OpId op) { return problem_.op(op).scratch_bytes.size() > 1; });
    if (i == list_.size()) return simple();
    const auto variants = static_cast<std::int64_t>(problem_.op(list_[i].id).scratch_bytes.size());
    list_[i].variant =
        static_cast<std::int32_t>((list_[i].variant + dice_.between(1, variants - 1)) % variants);
    return "another kernel at " + std::to_string(i);
  }

  /// An exchange with other ranks comes before or behind another.
  std::string other_exchange() {
    LongVector<std::size_t> found;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].action != Action::run) continue;
      const ir::OpKind kind = problem_.graph->op(list_[i].id).kind;
      if (ir::has_side_effects(kind) && kind != ir::OpKind::input && kind != ir::OpKind::output) {
        found.push_back(i);
      }
    }
    if (found.size() < 2) return simple();
    const auto k = static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(found.size()) - 1));
    const std::size_t i = found[k], j = found[k + 1];
    switch (dice_.below(3)) {
      case 0:
        std::swap(list_[i], list_[j]);
        return "an exchange and the next change places: " + std::to_string(i) + " and " + std::to_string(j);
      case 1:
        std::rotate(at(i), at(i + 1), at(j + 1));
        return "an exchange comes late: " + std::to_string(i) + " at " + std::to_string(j);
      default:
        std::rotate(at(i), at(j), at(j + 1));
        return "an exchange comes early: " + std::to_string(j) + " at " + std::to_string(i);
    }
  }

  /// An op finds an input that another storage has just adopted, and the input brought back from the tier
  /// too.
  std::string brought_back() {
    const std::size_t i = adopt_somewhere();
    if (i == list_.size()) return simple();
    const ir::StorageId from = list_[i].from;
    list_.insert(at(i + 1), {{Action::swap_in, from}, {Action::wait, from}});
    return "an input is adopted and brought back at " + std::to_string(i);
  }

  /// The same, and what adopted it has other memory by then.
  std::string brought_back_elsewhere() {
    const std::size_t i = adopt_somewhere();
    if (i == list_.size()) return simple();
    const ir::StorageId from = list_[i].from, to = list_[i].id;
    list_.insert(
        at(i + 1),
        {{Action::release, to}, {Action::swap_in, from}, {Action::wait, from}, {Action::acquire, to}});
    return "an input is adopted, given back and brought back at " + std::to_string(i);
  }

 private:
  LongVector<Instruction>::iterator at(std::size_t i) {
    return list_.begin() + static_cast<std::ptrdiff_t>(i);
  }
  std::size_t anywhere() {
    return static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(list_.size())));
  }

  /// The first run of such an op from anywhere on; the number of instructions if there is none.
  template <typename Fits>
  std::size_t find_run(const Fits& fits) {
    for (std::size_t i = anywhere(); i < list_.size(); ++i) {
      if (list_[i].action == Action::run && fits(list_[i].id)) return i;
    }
    return list_.size();
  }

  /// Makes an op adopt the memory of an input of the same footprint for an output that has memory already,
  /// with a copy of the input on the tier (if there was one before, that is not used); where the adopt is, or
  /// the number of instructions.
  std::size_t adopt_somewhere() {
    Overwrite pair;
    const std::size_t i = find_run([&](ir::OpId op) {
      const auto& uses = problem_.op(op).uses;
      for (const Use& from : uses) {
        for (const Use& to : uses) {
          const StorageInfo &a = problem_.storage(from.storage), &b = problem_.storage(to.storage);
          if (!from.reads || from.writes || to.reads || a.carried || b.carried || !a.swappable) continue;
          if (a.footprint_bytes != b.footprint_bytes || a.footprint_bytes == 0) continue;
          pair = {from.storage, to.storage};
          return true;
        }
      }
      return false;
    });
    if (i == list_.size()) return i;
    for (const ir::StorageId s :
         {pair.from, list_[i - 1].action == Action::adopt ? list_[i - 1].from : pair.from})
      give_place(s);
    const std::size_t before = list_.size();
    if (list_[i - 1].action == Action::adopt && list_[i - 1].id == pair.to) {
      list_.insert(at(i - 1), {{Action::swap_out, list_[i - 1].from}, {Action::wait, list_[i - 1].from}});
      return i - 1 + (list_.size() - before);
    }
    if (dice_.one_in(2)) {
      list_.insert(at(i), {{Action::swap_out, pair.from}, {Action::wait, pair.from}});
    }
    const std::size_t now = i + (list_.size() - before);
    list_.insert(at(now), {{Action::release, pair.to}, {Action::adopt, pair.to, 0, pair.from}});
    return now + 1;
  }

  /// A place of its own, if it has none.
  void give_place(ir::StorageId storage) {
    if (plan_.places.empty() || plan_.places[static_cast<std::size_t>(storage)] >= 0) return;
    std::int64_t end = 0;
    for (std::size_t s = 0; s < plan_.places.size(); ++s)
      end = std::max(end, plan_.places[s] + place_bytes(problem_.storages[s].size_bytes));
    plan_.places[static_cast<std::size_t>(storage)] = place_bytes(end);
  }

  const Problem& problem_;
  LongVector<Instruction>& list_;
  Plan& plan_;
  Dice& dice_;
};

}  // namespace penstock::plan
