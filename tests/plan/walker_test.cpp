#include "plan/walker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/budget_error.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {

/// Sums up what a walker tells, and looks at each op whether its inputs are where the walker says.
struct Ledger : PlanVisitor {
  Ledger(const Problem& of_problem, const Walker& followed) : problem(of_problem), walker(followed) {}

  void stands(const Standing& standing) {
    EXPECT_EQ(walker.is_resident(standing.storage), standing.resident);
    EXPECT_EQ(walker.pending(standing.storage), standing.pending);
  }
  void got_memory(ir::StorageId s, Action by) {
    EXPECT_TRUE(walker.is_resident(s));
    acquired += by == Action::acquire ? 1 : 0;
    note_peak();
  }
  void lost_memory(ir::StorageId s) { EXPECT_FALSE(walker.is_resident(s)); }
  void adopted(ir::StorageId to, ir::StorageId from) {
    EXPECT_TRUE(walker.is_resident(to));
    EXPECT_FALSE(walker.is_resident(from));
    adopters.push_back(to);
    ++adoptions;
  }
  void started(ir::StorageId s, Transfer direction) {
    EXPECT_EQ(walker.pending(s), direction);
    (direction == Transfer::read ? read_bytes : written_bytes) += problem.storage(s).size_bytes;
  }
  void waited(ir::StorageId s, Transfer direction) {
    EXPECT_NE(direction, Transfer::none);
    EXPECT_EQ(walker.pending(s), Transfer::none);
  }
  void begins(const OpRun& run) {
    note_peak();
    for (const ir::TensorId input : problem.graph->op(run.op).inputs) {
      const ir::StorageId s = problem.graph->tensor(input).storage;
      const bool is_adopted = std::any_of(adopters.begin(), adopters.end(),
                                          [&](ir::StorageId to) { return walker.holds(to) == input; });
      EXPECT_TRUE((walker.holds(s) == input && walker.pending(s) != Transfer::read) || is_adopted)
          << problem.graph->op(run.op).name.text();
    }
    adopters.clear();
  }
  void ends(const OpRun& run) {
    ++runs;
    repeated += run.repeated ? 1 : 0;
    EXPECT_TRUE(walker.has_run(run.op));
    for (const ir::TensorId output : problem.graph->op(run.op).outputs) {
      EXPECT_EQ(walker.holds(problem.graph->tensor(output).storage), output);
    }
  }
  void note_peak() { peak_bytes = std::max(peak_bytes, walker.used_bytes()); }

  const Problem& problem;
  const Walker& walker;
  std::vector<ir::StorageId> adopters;
  std::int64_t peak_bytes = 0, read_bytes = 0, written_bytes = 0, runs = 0, repeated = 0, acquired = 0;
  std::int64_t adoptions = 0;
};

/// What a walker tells of a plan, step after step, is what the checker counted in it by its own means.
TEST(Walker, AgreesWithTheChecker) {
  std::int64_t plans = 0, adoptions = 0, repeated = 0, read_bytes = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(2 + seed % 8), 8192, true, seed % 2 == 0});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
    allow_overwrites(problem);
    const Profile profile = random_profile(problem, seed, 1e7);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (const PolicyKind policy : all_policies()) {
      for (const int part : {1, 4, 8}) {
        problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
        PlanOptions options;
        options.policy = policy;
        options.profile = &profile;
        Plan plan;
        try {
          plan = make_plan(problem, options);
        } catch (const BudgetError&) {
          continue;
        }
        ++plans;
        Walker walker(problem, plan, true);
        Ledger ledger(problem, walker);
        walker.begin(ledger);
        ledger.note_peak();
        const std::int64_t boundary_bytes = walker.used_bytes();
        for (int i = 1; i <= 2; ++i) {
          walker.step(ledger);
          EXPECT_EQ(walker.used_bytes(), boundary_bytes);
          EXPECT_EQ(ledger.runs, i * plan.summary.runs);
          EXPECT_EQ(ledger.repeated, i * plan.summary.recomputed);
          EXPECT_EQ(ledger.read_bytes, i * plan.summary.swapped_in_bytes);
          EXPECT_EQ(ledger.written_bytes, i * plan.summary.swapped_out_bytes);
          EXPECT_EQ(ledger.acquired, i * count(plan, Action::acquire));
        }
        EXPECT_EQ(ledger.peak_bytes, plan.summary.peak_bytes);
        adoptions += ledger.adoptions;
        repeated += ledger.repeated;
        read_bytes += ledger.read_bytes;
      }
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(adoptions, 0);
  EXPECT_GT(repeated, 100);
  EXPECT_GT(read_bytes, 0);
}

}  // namespace
}  // namespace penstock::plan
