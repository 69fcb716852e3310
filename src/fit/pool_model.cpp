#include "fit/pool_model.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/long_vector.h"
#include "fit/move_count.h"
#include "fit/packing.h"
#include "memory/pack.h"
#include "memory/packed_pool.h"
#include "memory/units.h"
#include "memory/virtual_pool.h"
#include "tier/tier.h"

namespace penstock::fit {
namespace {

/// What a page of addresses takes in the kernel's page tables, which count where a machine limits memory by
/// group, and what the margin of a budget bears of that.
constexpr std::int64_t kPageBytes = 4 * kKiB, kEntryBytes = 8;
constexpr std::int64_t kTablesInMarginBytes = 8 * kMiB;
/// A new pool has so much more of addresses and of memory for small slots than its plans need: others, in
/// mid-run, leave other gaps.
constexpr std::int64_t kSpareShare = 8;
/// Small slots are swapped from this size on.
constexpr std::int64_t kLeastSwappedBytes = 64 * kKiB;
/// What plans are not given because small slots leave gaps: no more than all of these take.
constexpr std::int64_t kSmallGapBytes = 512 * kKiB;

class VirtualModel final : public PoolModel {
 public:
  VirtualModel(StorageMap map, std::int64_t rounding_bytes)
      : map_(std::move(map)), rounding_bytes_(rounding_bytes), rule_(rounding_bytes) {}

  std::string_view name() const override { return "virtual"; }
  std::string remark() const override {
    if (VirtualPool::pages_can_move()) return {};
    return "this kernel does not move pages (mremap with MREMAP_DONTUNMAP, Linux 5.7): the pool copies them, "
           "which takes longer; the packed pool does without";
  }

  plan::PoolRule rule(std::int64_t given_bytes) const override {
    plan::PoolRule rule;
    rule.fixed_bytes = std::min(rule_.fixed_bytes(map_.slot_bytes), kSmallGapBytes);
    rule.budget_bytes = given_bytes - rule.fixed_bytes;
    rule.footprint_bytes = [pool = rule_](std::int64_t bytes) {
      return pool.is_small(bytes) ? packed_bytes(bytes) : pool.footprint_bytes(bytes);
    };
    rule.swappable = [pool = rule_](ir::StorageId, std::int64_t bytes) {
      return !pool.is_small(bytes) || bytes >= kLeastSwappedBytes;
    };
    return rule;
  }

  Layout lay_out(std::span<const PlannedStep> steps, const LongVector<std::int64_t>& fixed) const override {
    Layout layout = pack_plans(map_, steps, fixed, &rule_);
    if (!fixed.empty()) return layout;
    const auto with_spare = [](std::int64_t bytes, std::int64_t unit) {
      return round_up(bytes + bytes / kSpareShare, unit);
    };
    layout.size = pool_size(with_spare(layout.size.small_bytes, kPackedPage), layout.size.paged_bytes,
                            with_spare(layout.size.address_bytes, rule_.grain_bytes()));
    return layout;
  }

  plan::Profile with_moves(plan::Profile profile, const PlannedStep& planned,
                           const PoolSize& size) const override {
    const MoveCount count = count_moves(planned, map_, rule_, size);
    profile.host.moves_each = count.moves_each;
    profile.host.moved_share = count.moved_share;
    return profile;
  }

  // Pages that were moved in parts are small ones from then on.
  double slowdown() const override { return rule_.grain_bytes() < kHugePage ? 1.08 : 1; }

  std::unique_ptr<Pool> make_pool(const PoolSize& size) const override {
    return std::make_unique<VirtualPool>(
        map_.slot_bytes, rule_, VirtualPoolSize{size.small_bytes, size.paged_bytes, size.address_bytes});
  }

  std::int64_t rounding_bytes() const override { return rounding_bytes_; }
  std::int64_t grain_bytes() const override { return rule_.grain_bytes(); }

 private:
  StorageMap map_;
  std::int64_t rounding_bytes_;
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

  Layout lay_out(std::span<const PlannedStep> steps, const LongVector<std::int64_t>& fixed) const override {
    return pack_plans(map_, steps, fixed, nullptr);
  }

  plan::Profile with_moves(plan::Profile profile, const PlannedStep& /*planned: nothing moves*/,
                           const PoolSize& /*size*/) const override {
    profile.host.moves_each = profile.host.moved_share = 0;
    return profile;
  }

  double slowdown() const override { return 1; }

  std::unique_ptr<Pool> make_pool(const PoolSize& size) const override {
    return std::make_unique<PackedPool>(map_.slot_bytes, size.small_bytes);
  }

  std::int64_t rounding_bytes() const override { return 0; }
  std::int64_t grain_bytes() const override { return 0; }

 private:
  StorageMap map_;
};

}  // namespace

PoolSize pool_size(std::int64_t small_bytes, std::int64_t paged_bytes, std::int64_t address_bytes) {
  const std::int64_t table_bytes = address_bytes / kPageBytes * kEntryBytes - kTablesInMarginBytes;
  return {small_bytes + paged_bytes + std::max<std::int64_t>(0, table_bytes), small_bytes, paged_bytes,
          address_bytes};
}

std::shared_ptr<const PoolModel> make_virtual_model(const StorageMap& map, std::int64_t rounding_bytes) {
  return std::make_shared<VirtualModel>(map, rounding_bytes);
}

std::shared_ptr<const PoolModel> make_packed_model(const StorageMap& map) {
  return std::make_shared<PackedModel>(map);
}

}  // namespace penstock::fit
