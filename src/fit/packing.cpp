#include "fit/packing.h"

#include <algorithm>

#include "base/error.h"
#include "base/long_vector.h"
#include "memory/pack.h"
#include "plan/walker.h"

namespace penstock::fit {
namespace {

/// Follows the plans, one behind the other and round again, and collects the stays of every slot. What is to
/// be packed at one place is an item: all stays of a slot that go beyond a step are one, each other stay is
/// one of its own.
class StayCollector : public plan::PlanVisitor {
 public:
  StayCollector(const StorageMap& map, const VirtualPoolRule* paged)
      : map_(map),
        paged_(paged),
        slots_(map.slot_bytes.size()),
        items_(static_cast<int>(map.slot_bytes.size())) {}

  void follow(const PlannedStep& planned) {
    step_ = planned.step;
    plan::Walker walker(*planned.problem, *planned.plan);
    if (item_of_.empty()) {
      walker.begin(*this);
    } else {
      plan::PlanVisitor nobody;  // what stands is known from the plan before
      walker.begin(nobody);
    }
    // Vectors that grow take half as much again.
    const auto gets_memory = [](const plan::Instruction& in) {
      return in.action == plan::Action::acquire || in.action == plan::Action::swap_in ||
             in.action == plan::Action::run;
    };
    const LongVector<plan::Instruction>& instructions = planned.plan->instructions;
    const auto most =
        static_cast<std::size_t>(std::count_if(instructions.begin(), instructions.end(), gets_memory));
    item_of_.emplace_back().reserve(most);
    LongVector<PackInterval>& stays = paged_ == nullptr ? stays_ : paged_stays_;
    stays.reserve(stays.size() + most);
    walker.step(*this);
    for (Slot& slot : slots_) slot.crosses = slot.stays;
  }

  void stands(const plan::Standing& standing) {
    if (!standing.resident) return;
    Slot& slot = slots_[static_cast<std::size_t>(standing.storage)];
    slot.stays = slot.from_before = slot.crosses = true;
    count_paged(paged_footprint(standing.storage));
  }
  void got_memory(ir::StorageId storage, plan::Action /*by*/) {
    ++now_;
    start(storage);
  }
  void lost_memory(ir::StorageId storage) {
    ++now_;
    end(storage);
  }
  /// The stay goes on at the same place under another slot's name.
  void adopted(ir::StorageId to, ir::StorageId from) {
    ++now_;
    Slot& giver = slots_[static_cast<std::size_t>(from)];
    Slot& taker = slots_[static_cast<std::size_t>(to)];
    taker.stays = true;
    taker.from_before = taker.crosses = false;
    taker.since = giver.since;
    taker.step = giver.step;
    taker.index = giver.index;
    giver.stays = false;
  }
  void begins(const plan::OpRun& run) {
    ++now_;
    const std::int64_t scratch = step_->kernel(run.op, run.variant).scratch_bytes();
    if (scratch == 0) return;
    start(map_.scratch_slot.at(scratch));
    end(map_.scratch_slot.at(scratch));
  }

  Layout pack(const LongVector<std::int64_t>& fixed) {
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      Slot& slot = slots_[s];
      if (!slot.stays) continue;
      const bool whole = slot.from_before;  // it never left
      add(static_cast<int>(s), static_cast<int>(s), whole ? 0 : slot.since,
          slot.first_end >= 0 ? slot.first_end : now_);
      if (!whole) set_item(slot, static_cast<int>(s));
    }
    const Packing small = penstock::pack(stays_, items_, fixed);
    const Packing paged = penstock::pack(paged_stays_, items_, fixed);
    const auto offset = [&](int item) {
      require(item >= 0, "a stay that is to be packed begins once and ends");
      return std::max(small.offsets[static_cast<std::size_t>(item)],
                      paged.offsets[static_cast<std::size_t>(item)]);
    };
    Layout layout;
    layout.size = pool_size(small.arena_bytes, most_paged_bytes_, paged.arena_bytes);
    layout.homes.reserve(slots_.size());
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      std::int64_t& home = layout.homes.emplace_back(offset(static_cast<int>(s)));
      if (home < 0 && slots_[s].first_item >= 0) home = offset(slots_[s].first_item);
    }
    for (const LongVector<int>& items : item_of_) {
      LongVector<std::int64_t>& offsets = layout.offsets.emplace_back();
      offsets.reserve(items.size());
      for (const int item : items) offsets.push_back(offset(item));
    }
    return layout;
  }

 private:
  struct Slot {
    bool stays = false;
    bool from_before = false;  // the present stay began before the first plan
    bool crosses = false;      // the present stay has gone beyond a step
    std::int64_t since = 0;
    std::int64_t first_end = -1;      // where the stay from before the first plan ended
    std::size_t step = 0, index = 0;  // of the present stay in item_of_
    int first_item = -1;
  };

  void start(int s) {
    Slot& slot = slots_[static_cast<std::size_t>(s)];
    slot.stays = true;
    slot.from_before = slot.crosses = false;
    slot.since = now_;
    count_paged(paged_footprint(s));
    slot.step = item_of_.size() - 1;
    slot.index = item_of_.back().size();
    item_of_.back().push_back(-1);
  }

  void end(int s) {
    Slot& slot = slots_[static_cast<std::size_t>(s)];
    slot.stays = false;
    count_paged(-paged_footprint(s));
    if (slot.from_before) {
      slot.first_end = now_;
      return;
    }
    const int item = slot.crosses ? s : items_++;
    if (slot.first_item < 0) slot.first_item = item;
    add(s, item, slot.since, now_);
    set_item(slot, item);
  }

  void set_item(const Slot& slot, int item) { item_of_[slot.step][slot.index] = item; }

  void add(int s, int item, std::int64_t first, std::int64_t last) {
    // Footprints are whole grains, so that offsets are.
    const std::int64_t footprint = paged_footprint(s);
    if (footprint > 0) {
      paged_stays_.push_back({item, first, last, footprint});
    } else {
      stays_.push_back({item, first, last, map_.slot_bytes[static_cast<std::size_t>(s)]});
    }
  }

  /// What the slot takes of the memory that moves.
  std::int64_t paged_footprint(int s) const {
    return paged_ == nullptr ? 0 : paged_->footprint_bytes(map_.slot_bytes[static_cast<std::size_t>(s)]);
  }

  void count_paged(std::int64_t more_bytes) {
    paged_bytes_ += more_bytes;
    most_paged_bytes_ = std::max(most_paged_bytes_, paged_bytes_);
  }

  const StorageMap& map_;
  const VirtualPoolRule* paged_;
  const lower::Executable* step_ = nullptr;
  std::int64_t now_ = 0;  // counts what takes or gives memory
  LongVector<Slot> slots_;
  int items_;
  LongVector<LongVector<int>> item_of_;  // by step, then by order of getting memory
  LongVector<PackInterval> stays_, paged_stays_;
  std::int64_t paged_bytes_ = 0, most_paged_bytes_ = 0;
};

}  // namespace

Layout pack_plans(const StorageMap& map, std::span<const PlannedStep> steps,
                  const LongVector<std::int64_t>& fixed, const VirtualPoolRule* paged) {
  StayCollector collector(map, paged);
  for (const PlannedStep& planned : steps) collector.follow(planned);
  return collector.pack(fixed);
}

}  // namespace penstock::fit
