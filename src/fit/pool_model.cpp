#include "fit/pool_model.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "fit/move_count.h"
#include "fit/packing.h"
#include "memory/pack.h"
#include "memory/packed_pool.h"
#include "memory/virtual_pool.h"
#include "tier/tier.h"

namespace penstock::fit {
namespace {

/// What a page of a slot takes in the kernel's page tables once it was touched, and what the margin of a
/// budget bears of that.
constexpr std::int64_t kPageBytes = 4 * kKiB, kEntryBytes = 8;
constexpr std::int64_t kTablesInMarginBytes = 8 * kMiB;

/// Each slot has addresses of its own here, so page tables grow with what all slots take together, however
/// little of that is in memory at a time. They count where a machine limits memory by group.
std::int64_t page_table_bytes(const std::vector<std::int64_t>& slot_bytes) {
  std::int64_t bytes = 0;
  for (const std::int64_t size : slot_bytes) bytes += size / kPageBytes * kEntryBytes;
  return std::max<std::int64_t>(0, bytes - kTablesInMarginBytes);
}

class VirtualModel final : public PoolModel {
 public:
  VirtualModel(StorageMap map, std::int64_t rounding_bytes)
      : map_(std::move(map)),
        rounding_bytes_(rounding_bytes),
        table_bytes_(page_table_bytes(map_.slot_bytes)),
        rule_(rounding_bytes) {}

  std::string_view name() const override { return "virtual"; }
  std::string remark() const override {
    if (VirtualPool::pages_can_move()) return {};
    return "this kernel does not move pages (mremap with MREMAP_DONTUNMAP, Linux 5.7): the pool copies them, "
           "which takes longer; the packed pool does without";
  }

  plan::PoolRule rule(std::int64_t given_bytes) const override {
    plan::PoolRule rule;
    rule.fixed_bytes = rule_.fixed_bytes(map_.slot_bytes) + table_bytes_;
    rule.budget_bytes = given_bytes - rule.fixed_bytes;
    rule.footprint_bytes = [pool = rule_](std::int64_t bytes) { return pool.footprint_bytes(bytes); };
    rule.swappable = [pool = rule_](ir::StorageId, std::int64_t bytes) { return !pool.is_small(bytes); };
    return rule;
  }

  Layout lay_out(std::span<const PlannedStep> steps,
                 const std::vector<std::int64_t>& /*fixed: slots have no offsets here*/) const override {
    Layout layout;
    for (const PlannedStep& planned : steps)
      layout.pool_bytes = std::max(layout.pool_bytes, planned.plan->summary.peak_bytes);
    layout.pool_bytes += rule_.fixed_bytes(map_.slot_bytes) + table_bytes_;
    layout.offsets.resize(steps.size());
    return layout;
  }

  plan::Profile with_moves(plan::Profile profile, const PlannedStep& planned,
                           std::int64_t pool_bytes) const override {
    profile.host.moves_each = moves_each(planned, map_, rule_, pool_bytes - table_bytes_);
    return profile;
  }

  // Pages that were moved in parts are small ones from then on.
  double slowdown() const override { return 1.03; }

  std::unique_ptr<Pool> make_pool(std::int64_t pool_bytes) const override {
    return std::make_unique<VirtualPool>(map_.slot_bytes, rule_, pool_bytes - table_bytes_);
  }

  std::int64_t rounding_bytes() const override { return rounding_bytes_; }

 private:
  StorageMap map_;
  std::int64_t rounding_bytes_;
  std::int64_t table_bytes_;
  VirtualPoolRule rule_;
};

class PackedModel final : public PoolModel {
 public:
  explicit PackedModel(StorageMap map) : map_(std::move(map)) {}

  std::string_view name() const override { return "packed"; }
  std::string remark() const override { return {}; }

  plan::PoolRule rule(std::int64_t given_bytes) const override {
    plan::PoolRule rule;
    rule.budget_bytes = given_bytes;
    rule.remaps = false;
    rule.footprint_bytes = packed_bytes;
    rule.swappable = [](ir::StorageId, std::int64_t bytes) { return bytes >= kTierAlignment; };
    return rule;
  }

  Layout lay_out(std::span<const PlannedStep> steps, const std::vector<std::int64_t>& fixed) const override {
    return pack_plans(map_, steps, fixed);
  }

  plan::Profile with_moves(plan::Profile profile, const PlannedStep& /*planned: nothing moves*/,
                           std::int64_t /*pool_bytes*/) const override {
    profile.host.moves_each = 0;
    return profile;
  }

  double slowdown() const override { return 1; }

  std::unique_ptr<Pool> make_pool(std::int64_t pool_bytes) const override {
    return std::make_unique<PackedPool>(map_.slot_bytes, pool_bytes);
  }

  std::int64_t rounding_bytes() const override { return 0; }

 private:
  StorageMap map_;
};

}  // namespace

std::shared_ptr<const PoolModel> make_virtual_model(const StorageMap& map, std::int64_t rounding_bytes) {
  return std::make_shared<VirtualModel>(map, rounding_bytes);
}

std::shared_ptr<const PoolModel> make_packed_model(const StorageMap& map) {
  return std::make_shared<PackedModel>(map);
}

}  // namespace penstock::fit
