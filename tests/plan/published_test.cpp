#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/retire_queue.h"
#include "plan/simulator.h"

namespace penstock::plan {
namespace {
constexpr std::int64_t kUnit = 1024;  ///< bytes of a value of size 1

/// A chain data -> op 1 -> op 2 ... -> loss and back. Op i reads value i - 1 and makes value i; backward op i
/// reads value i and the gradient, and, if op i is a convolution, value i - 1 as well.
struct Chain {
  struct Link {
    ir::OpKind kind = ir::OpKind::conv;
    std::int64_t size = 1;  ///< of the value it makes
  };
  ir::Graph graph;
  std::vector<ir::TensorId> values;         ///< by op; 0: what data makes
  std::vector<ir::OpId> forward, backward;  ///< by op

  explicit Chain(const std::vector<Link>& links) {
    values.push_back(tensor("value0", 1, ir::Role::input));
    forward.push_back(add(ir::OpKind::input, ir::Phase::forward, "data", {}, {values[0]}));
    for (std::size_t i = 1; i <= links.size(); ++i) {
      values.push_back(tensor("value" + std::to_string(i), links[i - 1].size, ir::Role::activation));
      forward.push_back(
          add(links[i - 1].kind, ir::Phase::forward, "op" + std::to_string(i), {values[i - 1]}, {values[i]}));
    }
    ir::TensorId gradient = tensor("gradient", 1, ir::Role::gradient);
    add(ir::OpKind::cross_entropy_backward, ir::Phase::backward, "loss", {values.back()}, {gradient});
    backward.resize(values.size(), ir::kNone);
    for (std::size_t i = links.size(); i >= 1; --i) {
      const bool is_conv = links[i - 1].kind == ir::OpKind::conv;
      std::vector<ir::TensorId> inputs{gradient, values[i]};
      if (is_conv) inputs.push_back(values[i - 1]);
      gradient = tensor("gradient" + std::to_string(i), 1, ir::Role::gradient);
      backward[i] = add(is_conv ? ir::OpKind::conv_backward_data : ir::OpKind::activation_backward,
                        ir::Phase::backward, "back" + std::to_string(i), inputs, {gradient});
    }
  }

  ir::TensorId tensor(const std::string& name, std::int64_t size, ir::Role role) {
    return graph.add_tensor(name, ir::DType::f32, {size * kUnit / 4}, role);
  }
  ir::OpId add(ir::OpKind kind, ir::Phase phase, const std::string& name, std::vector<ir::TensorId> inputs,
               std::vector<ir::TensorId> outputs) {
    ir::Op op;
    op.kind = kind;
    op.phase = phase;
    op.name = name;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    graph.add_op(std::move(op));
    return static_cast<ir::OpId>(graph.ops.size()) - 1;
  }
  Problem problem(std::int64_t budget_units) const {
    return make_problem(graph, {}, grain_rule(budget_units * kUnit, kUnit));
  }
  ir::StorageId storage(std::size_t value) const { return graph.tensor(values[value]).storage; }
};

std::vector<Chain::Link> convolutions(std::size_t count) {
  return std::vector<Chain::Link>(count);
}

/// The value whose storage it is; the number of values if it is a gradient's.
std::size_t value_of(const Chain& chain, ir::StorageId s) {
  for (std::size_t i = 0; i < chain.values.size(); ++i) {
    if (chain.storage(i) == s) return i;
  }
  return chain.values.size();
}

/// The values that instructions of this kind name, in order.
std::vector<std::size_t> values_of(const Chain& chain, const Plan& plan, Action action) {
  std::vector<std::size_t> found;
  for (const Instruction& in : plan.instructions) {
    if (in.action == action) found.push_back(value_of(chain, in.id));
  }
  return found;
}

/// How many ops for which `counts` run from the instruction on until one uses its storage, that one not
/// counted.
template <typename Counts>
int ops_until_use(const Problem& problem, const Plan& plan, std::size_t instruction, const Counts& counts) {
  int ops = 0;
  for (std::size_t i = instruction; i < plan.instructions.size(); ++i) {
    const Instruction& in = plan.instructions[i];
    if (in.action != Action::run) continue;
    for (const Use& use : problem.op(in.id).uses) {
      if (use.storage == plan.instructions[instruction].id) return ops;
    }
    ops += counts(in.id) ? 1 : 0;
  }
  ADD_FAILURE() << "what is read in is never used";
  return -1;
}

Plan proved(const Problem& problem, Plan plan) {
  prove(problem, plan);
  return plan;
}

// SuperNeurons: the cache gives up what was used least recently, and nothing while there is room.
TEST(Published, SuperNeuronsEvictsTheLeastRecentlyUsed) {
  const Chain chain(convolutions(10));
  // 11 values; ops need up to 4 at once.
  for (const std::int64_t budget : {5, 6, 8, 10}) {
    const Problem problem = chain.problem(budget);
    const Plan plan = proved(problem, plan_superneurons(problem));
    const std::vector<std::size_t> out = values_of(chain, plan, Action::swap_out);
    ASSERT_FALSE(out.empty());
    // In forward each value is used once more after it is made, so the oldest goes first.
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i) << budget;
    EXPECT_LT(out.size(), chain.values.size());
    EXPECT_EQ(plan.summary.recomputed, 0);
  }
  const Problem roomy = chain.problem(100);
  EXPECT_EQ(count(proved(roomy, plan_superneurons(roomy)), Action::swap_out), 0);
}

// Its prefetch reaches to the next expensive op, over the cheap ones before that.
TEST(Published, SuperNeuronsPrefetchesOneExpensiveOpAhead) {
  std::vector<Chain::Link> links;
  for (int i = 0; i < 6; ++i) {
    links.push_back({ir::OpKind::conv, 1});
    links.push_back({ir::OpKind::activation, 1});
  }
  const Chain chain(links);
  const Problem problem = chain.problem(6);
  const Plan plan = proved(problem, plan_superneurons(problem));
  const auto is_expensive = [&](ir::OpId op) {
    const ir::OpKind kind = chain.graph.op(op).kind;
    return kind == ir::OpKind::conv || kind == ir::OpKind::conv_backward_data;
  };
  int ahead = 0, reads = 0;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (plan.instructions[i].action != Action::swap_in) continue;
    const int expensive = ops_until_use(problem, plan, i, is_expensive);
    EXPECT_LE(expensive, 1);  // 0: there was no room before
    ahead += expensive;
    ++reads;
  }
  EXPECT_GE(reads, 3);
  EXPECT_GE(ahead, reads / 2);
}

// Cheap ops between two expensive ones are a segment. Where all of its values together are no more than the
// neediest op has (speed-centric), they are made anew once; otherwise (memory-centric) for each that needs
// them.
TEST(Published, SuperNeuronsRecomputesSegmentsBySpeedOrMemory) {
  const auto reruns = [](std::int64_t segment_size, std::int64_t widest) {
    std::vector<Chain::Link> links{{ir::OpKind::conv, 1}};
    for (int i = 0; i < 4; ++i) links.push_back({ir::OpKind::activation, segment_size});
    links.push_back({ir::OpKind::conv, widest});
    links.push_back({ir::OpKind::conv, 1});
    const Chain chain(links);
    Problem problem = chain.problem(0);
    PlanOptions options;
    options.policy = PolicyKind::superneurons;
    problem.budget_bytes = smallest_budget(problem, options);
    const Plan plan = proved(problem, plan_superneurons(problem));
    std::vector<int> runs(chain.values.size(), 0);
    for (const Instruction& in : plan.instructions) {
      for (std::size_t i = 2; i <= 5; ++i)
        runs[i] += in == Instruction{Action::run, chain.forward[i]} ? 1 : 0;
    }
    return std::vector<int>(runs.begin() + 2, runs.begin() + 6);
  };
  // The widest op has 20 + 2, the segment 4.
  EXPECT_EQ(reruns(1, 20), (std::vector<int>{2, 2, 2, 2}));
  // The segment has 40, the widest op 21: the last value is read by two, and its makers run for each of those
  // behind.
  const std::vector<int> memory_centric = reruns(10, 1);
  for (std::size_t i = 0; i + 1 < memory_centric.size(); ++i) {
    EXPECT_GT(memory_centric[i], memory_centric[i + 1]) << i;
  }
  EXPECT_GE(memory_centric[0], 5);
}

/// The least memory in which these knobs are accepted: there most of what is retired must go.
Problem tightest(const Chain& chain, const LmsOptions& knobs) {
  PlanOptions options;
  options.policy = PolicyKind::lms;
  options.lms = knobs;
  Problem problem = chain.problem(0);
  problem.budget_bytes = smallest_budget(problem, options);
  return problem;
}

// LMS: which gaps are swapped is a matter of distance alone, copy-ins start `ahead` ops before their use.
TEST(Published, LmsSwapsByThresholdAndReadsAhead) {
  const Chain chain(convolutions(10));
  std::size_t last_swapped = 100;
  for (const std::int64_t threshold : {1, 4, 9, 12}) {
    for (const std::int64_t ahead : {1, 2, 4}) {
      const Problem problem = tightest(chain, {threshold, ahead, 1});
      const Plan plan = proved(problem, plan_lms(problem, {threshold, ahead, 1}));
      const std::vector<std::size_t> swapped = values_of(chain, plan, Action::swap_out);
      for (const std::size_t value : swapped) {
        const auto& accesses = problem.storage(chain.storage(value)).accesses;
        std::int64_t longest = 0;
        for (std::size_t k = 1; k < accesses.size(); ++k) {
          longest = std::max<std::int64_t>(longest, accesses[k].position - accesses[k - 1].position);
        }
        EXPECT_GT(longest, threshold);
      }
      EXPECT_FALSE(swapped.empty());
      if (ahead == 1) {
        EXPECT_LE(swapped.size(), last_swapped);
        last_swapped = swapped.size();
      }
      // What would be read before it has gone stays, and is not read.
      for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
        if (plan.instructions[i].action != Action::swap_in) continue;
        EXPECT_EQ(ops_until_use(problem, plan, i, [](ir::OpId) { return true; }), ahead) << threshold;
      }
    }
  }
  EXPECT_LT(last_swapped, 5U);
}

// Later uses no further apart than `groupby` share a copy-in.
TEST(Published, LmsGroupsUses) {
  Chain chain(convolutions(4));
  // Value 1 is read three times more, 4 ops apart from each other; the others leave no room for it.
  for (int i = 0; i < 12; ++i) {
    const bool reads = i % 4 == 3;
    chain.add(ir::OpKind::activation, ir::Phase::backward, "more" + std::to_string(i),
              {reads ? chain.values[1] : chain.values[0]},
              {chain.tensor("made" + std::to_string(i),
                            reads        ? 1
                            : i % 4 == 2 ? 40
                                         : 50,
                            ir::Role::gradient)});
  }
  const auto reads = [&](std::int64_t groupby) {
    const Problem problem = tightest(chain, {3, 1, groupby});
    const Plan plan = proved(problem, plan_lms(problem, {3, 1, groupby}));
    const auto in = values_of(chain, plan, Action::swap_in);
    return std::count(in.begin(), in.end(), 1U);
  };
  // Each of the three has a copy-in of its own.
  EXPECT_EQ(reads(1), 3);
  EXPECT_EQ(reads(3), 3);
  // Or they share one with the uses of backward, for which it has not even left.
  EXPECT_EQ(reads(4), 0);
}

// What is not given is tuned: threshold, then ahead, then groupby, each the largest whose simulated memory
// fits.
TEST(Published, LmsTunesAllKnobs) {
  int tuned_ahead = 0, tuned_groupby = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(4 + seed % 8), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    PlanOptions options;
    options.policy = PolicyKind::lms;
    const std::int64_t smallest = smallest_budget(problem, options), in_memory = keep_bytes(problem);
    problem.budget_bytes = (3 * smallest + in_memory) / 4;
    const auto most = static_cast<std::int64_t>(problem.ops.size());
    const LmsOptions knobs = tune_lms(problem);
    tuned_ahead += knobs.ahead > 1 ? 1 : 0;
    tuned_groupby += knobs.groupby > 1 ? 1 : 0;
    EXPECT_EQ(plan_lms(problem).instructions, plan_lms(problem, knobs).instructions);
    const auto expect_refused = [&](const LmsOptions& more) {
      EXPECT_THROW(plan_lms(problem, more), BudgetError) << seed;
    };
    if (knobs.threshold < most) expect_refused({knobs.threshold + 1, 1, 1});
    if (knobs.ahead < most) expect_refused({knobs.threshold, knobs.ahead + 1, 1});
    if (knobs.groupby < most) expect_refused({knobs.threshold, knobs.ahead, knobs.groupby + 1});
  }
  EXPECT_GT(tuned_ahead, 10);
  EXPECT_GT(tuned_groupby, 10);
}

/// All ops take a second; the tier moves a value in so many.
Profile seconds_each(const Problem& problem, double move_seconds) {
  Profile profile;
  for (std::size_t op = 0; op < problem.ops.size(); ++op) profile.op_seconds.push_back({1.0});
  const double bandwidth = static_cast<double>(kUnit) / move_seconds;
  profile.tier = {bandwidth, bandwidth, bandwidth, bandwidth, 0, false};
  return profile;
}

// PoocH, first step: what compute waits for is kept, from the output side, and not what comes in time.
TEST(Published, PoochKeepsWhatIsExposed) {
  const Chain chain(convolutions(10));
  const Problem problem = chain.problem(9);
  // A value moves in half of the time of an op: all copies are hidden but those around the turn.
  const Plan plan = proved(problem, plan_pooch(problem, seconds_each(problem, 0.5)));
  const Simulation simulation = simulate(problem, plan, seconds_each(problem, 0.5));
  EXPECT_NEAR(simulation.stall_seconds, 0, 1e-9);
  const std::vector<std::size_t> out = values_of(chain, plan, Action::swap_out);
  ASSERT_FALSE(out.empty());
  // Those near the turn are kept, so the swapped ones are the first of the chain.
  EXPECT_LT(*std::max_element(out.begin(), out.end()), 8U);
  EXPECT_EQ(plan.summary.recomputed, 0);
}

// Second step: what is still exposed then is computed again, those first that save most of it for their time.
TEST(Published, PoochRecomputesWhatStaysExposed) {
  std::vector<Chain::Link> links;
  for (int i = 0; i < 5; ++i) {
    links.push_back({ir::OpKind::conv, 1});
    links.push_back({ir::OpKind::activation, 1});
  }
  const Chain chain(links);
  const Problem problem = chain.problem(9);
  Profile profile = seconds_each(problem, 3);
  // Activations cost a tenth of what convolutions cost.
  for (std::size_t i = 2; i < chain.forward.size(); i += 2)
    profile.op_seconds.set(static_cast<std::size_t>(chain.forward[i]), 0, 0.1);
  const Plan plan = proved(problem, plan_pooch(problem, profile));
  EXPECT_GT(plan.summary.recomputed, 0);
  std::vector<int> runs(chain.graph.ops.size(), 0);
  for (const Instruction& in : plan.instructions) {
    if (in.action == Action::run) ++runs[static_cast<std::size_t>(in.id)];
  }
  int activations = 0, others = 0;
  for (std::size_t i = 1; i < chain.forward.size(); ++i) {
    (i % 2 == 0 ? activations : others) += runs[static_cast<std::size_t>(chain.forward[i])] - 1;
  }
  EXPECT_GT(activations, 0);
  EXPECT_LE(others, activations);
  // A fast tier leaves nothing exposed, and nothing is computed again.
  const Plan fast = proved(problem, plan_pooch(problem, seconds_each(problem, 0.25)));
  EXPECT_EQ(fast.summary.recomputed, 0);
}

// The window: where the op at its tail needs room, its head retreats, and what only the far ops needed was
// never read; what is wanted again before its copy-out matters was never written.
TEST(Published, WindowTakesTransfersBack) {
  std::int64_t reads = 0, writes = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(2 + seed % 14), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (int part = 0; part < 8; ++part) {
      problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
      const Plan plan =
          proved(problem, plan_window(problem, {part % 2 == 0 ? 0 : 100 * problem.budget_bytes}));
      // By storage: read and not used since; written and not released since.
      std::vector<bool> unused(problem.storages.size(), false), idle(problem.storages.size(), false);
      for (const Instruction& in : plan.instructions) {
        if (in.action == Action::run) {
          for (const Use& use : problem.op(in.id).uses) unused[static_cast<std::size_t>(use.storage)] = false;
          continue;
        }
        const auto s = static_cast<std::size_t>(in.id);
        if (in.action == Action::swap_in) unused[s] = true, ++reads;
        if (in.action == Action::swap_out) idle[s] = true, ++writes;
        if (in.action == Action::release) {
          EXPECT_FALSE(unused[s]) << "read for nothing, seed " << seed << " part " << part;
          idle[s] = false;
        }
      }
      for (std::size_t s = 0; s < idle.size(); ++s) {
        if (idle[s] && !problem.storages[s].carried) ADD_FAILURE() << "written for nothing, seed " << seed;
      }
    }
  }
  EXPECT_GT(reads, 500);
  EXPECT_GT(writes, 500);
}

TEST(Published, WindowForgetsCopyOutsOfWhatIsWantedAgain) {
  const Chain chain(convolutions(3));
  const Problem problem = chain.problem(100);
  PlanBuilder builder(problem, boundary_in_memory(problem));
  RetireQueue retired(problem, builder);
  builder.acquire(chain.storage(0));
  builder.run(0);
  retired.add(chain.storage(0));
  EXPECT_EQ(builder.pending(chain.storage(0)), Transfer::write);
  EXPECT_EQ(retired.bytes(), kUnit);
  retired.recall(chain.storage(0));
  EXPECT_TRUE(retired.empty());
  EXPECT_EQ(builder.pending(chain.storage(0)), Transfer::none);
  EXPECT_TRUE(builder.mapped(chain.storage(0)));
  EXPECT_FALSE(builder.clean(chain.storage(0)));
  EXPECT_EQ(count(builder.finish("window"), Action::swap_out), 0);
}

}  // namespace
}  // namespace penstock::plan
