#include "train/packed_layout.h"

#include <vector>

namespace penstock::training {
namespace {

constexpr std::int64_t kAbsent = -2;
constexpr std::int64_t kFromBefore = -1;

/// Follows the plans, one behind the other and round again, and collects the stays of every slot.
class StayCollector {
 public:
  explicit StayCollector(const run::StorageMap& map)
      : map_(map), since_(map.slot_bytes.size(), kAbsent), first_end_(map.slot_bytes.size(), kAbsent) {}

  void begin(const plan::Boundary& boundary) {
    for (const plan::Place& place : boundary) {
      if (place.resident) since_[slot(place.storage)] = kFromBefore;
    }
  }

  void follow(const PlannedStep& planned) {
    for (const plan::Instruction& in : planned.plan->instructions) {
      if (in.action == plan::Action::acquire || in.action == plan::Action::swap_in)
        since_[slot(in.id)] = now_;
      if (in.action == plan::Action::release) end_stay(slot(in.id));
      if (in.action == plan::Action::run) {
        const auto op = static_cast<std::size_t>(in.id);
        const auto& variants = planned.step->variant_scratch_bytes;
        const std::int64_t scratch = variants.empty() ? planned.step->scratch_bytes[op]
                                                      : variants[op][static_cast<std::size_t>(in.variant)];
        if (scratch > 0) add(static_cast<std::size_t>(map_.scratch_slot.at(scratch)), now_, now_);
      }
      ++now_;
    }
  }

  std::vector<PackInterval> finish() {
    for (std::size_t s = 0; s < since_.size(); ++s) {
      if (since_[s] == kFromBefore) add(s, 0, now_);
      if (since_[s] >= 0) add(s, since_[s], first_end_[s] >= 0 ? first_end_[s] : now_);
    }
    return std::move(stays_);
  }

 private:
  static std::size_t slot(std::int32_t storage) { return static_cast<std::size_t>(storage); }

  void end_stay(std::size_t s) {
    if (since_[s] == kFromBefore) {
      first_end_[s] = now_;
    } else {
      add(s, since_[s], now_);
    }
    since_[s] = kAbsent;
  }

  void add(std::size_t s, std::int64_t first, std::int64_t last) {
    stays_.push_back({static_cast<int>(s), first, last, map_.slot_bytes[s]});
  }

  const run::StorageMap& map_;
  std::int64_t now_ = 0;
  std::vector<std::int64_t> since_;      ///< by slot: the instruction that gave it memory
  std::vector<std::int64_t> first_end_;  ///< by slot: where the stay that began before the first plan ended
  std::vector<PackInterval> stays_;
};

}  // namespace

Packing pack_plans(const run::StorageMap& map, std::span<const PlannedStep> steps) {
  StayCollector collector(map);
  collector.begin(steps.front().plan->boundary);
  for (const PlannedStep& planned : steps) collector.follow(planned);
  return pack(collector.finish(), static_cast<int>(map.slot_bytes.size()));
}

}  // namespace penstock::training
