#include "report/layers.h"

#include <gtest/gtest.h>

#include "plan/checker.h"
#include "plan/make_plan.h"
#include "report/traced_step.h"

namespace penstock::report {
namespace {

TEST(Layers, ModulesAreNamesWithoutTheirEndings) {
  EXPECT_EQ(module_of("layer1.0.conv1.weight.grad"), "layer1.0.conv1");
  EXPECT_EQ(module_of("layer1.0.conv1"), "layer1.0.conv1");
  EXPECT_EQ(module_of("layer1.0.bn1.relu.grad.1"), "layer1.0.bn1");
  EXPECT_EQ(module_of("conv1.weight.momentum'"), "conv1");
  EXPECT_EQ(module_of("features.0.weight@Acd8a"), "features.0");
  EXPECT_EQ(module_of("relu"), "relu");
  EXPECT_EQ(module_of(""), "");
}

TEST(Layers, KeepKeepsAndWindowSwaps) {
  const TracedStep traced(2);
  plan::Problem roomy = traced.problem;
  roomy.budget_bytes = plan::keep_bytes(roomy);
  std::int64_t kept = 0;
  for (const LayerUse& row : layer_uses(roomy, plan::plan_keep(roomy))) {
    kept += row.kept_bytes;
    EXPECT_EQ(row.swapped_bytes + row.recomputed_bytes, 0);
  }
  std::int64_t swapped = 0, total = 0;
  for (const LayerUse& row : layer_uses(traced.problem, traced.plan)) {
    swapped += row.swapped_bytes;
    total += row.total_bytes();
  }
  EXPECT_GT(swapped, 0);
  EXPECT_GE(total, kept);
}

TEST(Layers, ARepeatedOpsOutputIsRecomputed) {
  const TracedStep traced(2);
  plan::Problem roomy = traced.problem;
  roomy.budget_bytes = plan::keep_bytes(roomy);
  plan::Plan plan = plan::plan_keep(roomy);
  const std::vector<Fate> before = fates(roomy, plan);
  // Only the fates are looked at: an op that runs twice is all it takes.
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(roomy.ops.size()); ++op) {
    const auto storage =
        static_cast<std::size_t>(roomy.graph->tensor(roomy.graph->op(op).outputs[0]).storage);
    if (before[storage] != Fate::kept) continue;
    plan.instructions.push_back({plan::Action::run, op, 0});
    EXPECT_EQ(fates(roomy, plan)[storage], Fate::recomputed);
    return;
  }
  FAIL() << "no op makes anything that is kept";
}

TEST(Layers, RowsAreFewAndLoseNoByte) {
  const TracedStep traced(2);
  std::int64_t all = 0, few = 0;
  for (const LayerUse& row : layer_uses(traced.problem, traced.plan, 1000)) all += row.total_bytes();
  const std::vector<LayerUse> rows = layer_uses(traced.problem, traced.plan, 3);
  for (const LayerUse& row : rows) few += row.total_bytes();
  EXPECT_LE(rows.size(), 3U);
  EXPECT_EQ(all, few);
}

}  // namespace
}  // namespace penstock::report
