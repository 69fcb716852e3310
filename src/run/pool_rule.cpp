#include "run/pool_rule.h"

#include "memory/virtual_pool.h"

namespace penstock::run {

plan::PoolRule virtual_pool_rule(const StorageMap& map, std::int64_t capacity_bytes, bool only_mapped,
                                 std::int64_t rule_bytes) {
  const VirtualPoolRule pool(rule_bytes > 0 ? rule_bytes : capacity_bytes);
  plan::PoolRule rule;
  rule.fixed_bytes = pool.fixed_bytes(map.slot_bytes);
  rule.budget_bytes = capacity_bytes - rule.fixed_bytes;
  rule.footprint_bytes = [pool](std::int64_t size_bytes) { return pool.footprint_bytes(size_bytes); };
  rule.swappable = [pool, extent = only_mapped ? map.extent : std::vector<int>{}](ir::StorageId storage,
                                                                                  std::int64_t size_bytes) {
    return !pool.is_small(size_bytes) && (extent.empty() || extent[static_cast<std::size_t>(storage)] >= 0);
  };
  return rule;
}

plan::Problem make_problem(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                           const std::optional<plan::Boundary>& boundary) {
  if (!step.variant_scratch_bytes.empty()) {
    return plan::make_problem(step.graph, plan::VariantScratch(step.variant_scratch_bytes), rule,
                              map.storage_bytes(), boundary);
  }
  return plan::make_problem(step.graph, step.scratch_bytes, rule, map.storage_bytes(), boundary);
}

plan::Problem make_problem(const lower::Executable& step, const StorageMap& map, std::int64_t capacity_bytes,
                           const std::optional<plan::Boundary>& boundary, bool only_mapped) {
  return make_problem(step, map, virtual_pool_rule(map, capacity_bytes, only_mapped), boundary);
}

}  // namespace penstock::run
