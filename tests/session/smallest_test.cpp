#include <gtest/gtest.h>

#include "base/bytes.h"
#include "fit/fit.h"
#include "models/network_graph.h"
#include "plan/budget_error.h"
#include "plan/policies.h"
#include "session/program.h"
#include "support/classifier_builder.h"

namespace penstock::session {
namespace {

Network blocks(std::int64_t batch) {
  testing::ClassifierBuilder b("blocks", {batch, 3, 16, 16});
  Value x = b.relu(b.batch_norm("bn0", b.conv("conv0", b.images(), 32, {.padding = {1}})));
  for (const std::string name : {"1", "2", "3"}) {
    const Value y = b.relu(b.batch_norm("bn" + name, b.conv("conv" + name, x, 32, {.padding = {1}})));
    x = b.add(x, y);
  }
  return models::make_network(b.finish(b.linear("classifier", b.flatten(b.global_avg_pool(x)), 10)));
}

/// The smallest virtual pool, and what is in memory while the neediest op runs.
struct Floor {
  fit::PoolSize pool;
  std::int64_t neediest_bytes = 0, in_memory_bytes = 0;

  std::int64_t rest_bytes() const { return pool.pool_bytes - neediest_bytes; }
};

Floor floor_of(std::int64_t batch) {
  const Optimizer optimizer;
  ProgramRequest request;
  request.optimizer = &optimizer;
  request.slice_samples = 4;
  const Program program = make_program(blocks(batch), request);
  Floor floor;
  const lower::Executable& step = *program.training;
  const plan::Problem problem = plan::make_problem(step.graph, step.scratch_bytes, plan::grain_rule(0, 64));
  for (std::size_t op = 0; op < problem.ops.size(); ++op)
    floor.neediest_bytes = std::max(floor.neediest_bytes, problem.ops[op].need_bytes);
  fit::Request asked;
  asked.pool = PoolKind::paged;
  floor.in_memory_bytes = fit::in_memory_bytes(program.steps(), asked);
  try {
    fit::first_fit(program.steps(), asked);
  } catch (const plan::BudgetError& error) {
    asked.division.budget_bytes = error.needed_bytes();
    floor.pool = fit::first_fit(program.steps(), asked).size;
  }
  return floor;
}

/// A batch in slices needs memory for the neediest op, and beside that about as much for many slices as for
/// few: addresses and small storages are shared by what is there at different times.
TEST(SmallestPool, DoesNotGrowWithTheBatch) {
  const Floor few = floor_of(32), many = floor_of(1024);
  EXPECT_GT(many.in_memory_bytes, 16 * few.in_memory_bytes);
  EXPECT_LT(few.rest_bytes(), 128 * kKiB);
  EXPECT_LT(many.rest_bytes(), 384 * kKiB);
  EXPECT_LT(many.pool.address_bytes, 3 * many.pool.paged_bytes);
}

}  // namespace
}  // namespace penstock::session
