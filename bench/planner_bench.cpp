/// How long planning takes and what the plans are worth, in simulation on a profile estimated from shapes.
/// planner_bench [curve [MODEL]] [--bandwidth BYTES_PER_SECOND]
///   `auto` on ever deeper networks (or one of them), at a third of what they need in memory
/// planner_bench policies MODEL --batch N --memory BYTES [--bandwidth BYTES_PER_SECOND]
///   each policy on one network
/// planner_bench optimum
///   `auto` against the exact optimum of small steps
#include <fmt/format.h>

#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "fit/pool_model.h"
#include "fit/step_problem.h"
#include "fit/storage_map.h"
#include "plan/bound.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/estimate.h"
#include "plan/make_plan.h"
#include "plan/optimum.h"
#include "plan/simulator.h"
#include "session/program.h"

namespace {

using namespace penstock;

struct Arguments {
  std::string command = "curve";
  std::string model;
  std::int64_t batch = 32;
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  double bandwidth = 1e9;
};

/// A network's training step and all that planning it takes.
struct Step {
  session::Program program;
  fit::StorageMap map;

  Step(const std::string& model, std::int64_t batch) {
    ModelOptions options;
    options.batch = batch;
    const Optimizer optimizer = Optimizer::sgd(0, 0.9F);
    session::ProgramRequest request;
    request.optimizer = &optimizer;
    program = session::make_program(Network::model(model, options), request);
    const lower::Executable* steps[] = {program.training.get()};
    map = fit::map_slots(steps);
  }

  plan::Problem problem(std::int64_t capacity_bytes) const {
    return fit::step_problem(*program.training, map,
                             fit::make_virtual_model(map, capacity_bytes)->rule(capacity_bytes));
  }

  /// What the pool takes if everything stays, with the rounding that a pool of that size has.
  std::int64_t keep_capacity() const {
    std::int64_t capacity = std::accumulate(map.slot_bytes.begin(), map.slot_bytes.end(), std::int64_t{0});
    for (int round = 0; round < 3; ++round) {
      const plan::Problem roomy = problem(capacity);
      capacity = plan::keep_bytes(roomy) + roomy.fixed_bytes;
    }
    return capacity;
  }
};

plan::Profile profile_of(const plan::Problem& problem, double bandwidth) {
  plan::MachineEstimate machine;
  machine.tier.read_bandwidth = machine.tier.write_bandwidth = bandwidth;
  machine.tier.read_bandwidth_together = machine.tier.write_bandwidth_together = bandwidth / 2;
  return plan::estimate_profile(problem, machine);
}

/// Of this process's processor time: planning has one thread, and others may be on the machine.
double now_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void print_row(const std::string& name, const plan::Problem& problem, const plan::Profile& profile,
               plan::PolicyKind policy) {
  plan::PlanOptions options;
  options.policy = policy;
  options.profile = &profile;
  const double begin = now_seconds();
  try {
    const plan::Plan made = plan::make_plan(problem, options);
    const double plan_seconds = now_seconds() - begin;
    const plan::Simulation simulation = plan::simulate(problem, made, profile);
    const double bound_begin = now_seconds();
    const plan::Bound bound = plan::lower_bound(problem, profile);
    const double bound_seconds = now_seconds() - bound_begin;
    fmt::print("{:14} {:6} {:9.1f} {:8.3f} {:10.2f} {:10.3f} {:9.1f} {:8.3f} {:9.3f} {:9.1f} {:9.1f} {:7}\n",
               name, problem.ops.size(), static_cast<double>(problem.budget_bytes) / 1e6, plan_seconds,
               plan_seconds / static_cast<double>(problem.ops.size()) * 1e6, simulation.step_seconds,
               100 * bound.compute_seconds / simulation.step_seconds, simulation.step_seconds / bound.seconds,
               bound_seconds, static_cast<double>(made.summary.swapped_out_bytes) / 1e6,
               static_cast<double>(made.summary.swapped_in_bytes) / 1e6, made.summary.recomputed);
  } catch (const plan::BudgetError& error) {
    fmt::print("{:14} {:6} {:9.1f} {:8.3f} needs {:.1f} MB\n", name, problem.ops.size(),
               static_cast<double>(problem.budget_bytes) / 1e6, now_seconds() - begin,
               static_cast<double>(error.needed_bytes()) / 1e6);
  }
  std::fflush(stdout);
}

void print_head(const char* first) {
  fmt::print("{:14} {:>6} {:>9} {:>8} {:>10} {:>10} {:>9} {:>8} {:>9} {:>9} {:>9} {:>7}\n", first, "ops",
             "budget MB", "plan s", "us per op", "step s", "% compute", "of bound", "bound s", "out MB",
             "in MB", "reruns");
}

void print_curve(const Arguments& arguments) {
  print_head("auto on");
  struct Row {
    const char* model;
    std::int64_t batch;
  };
  for (const Row& row : {Row{"resnet50", 32}, Row{"resnet152", 8}, Row{"resnet-251", 2}, Row{"resnet-500", 2},
                         Row{"resnet-1001", 2}, Row{"resnet-1751", 2}, Row{"resnet-2501", 2}}) {
    if (!arguments.model.empty() && arguments.model != row.model) continue;
    const Step step(row.model, row.batch);
    const plan::Problem problem = step.problem(step.keep_capacity() / 3);
    print_row(row.model, problem, profile_of(problem, arguments.bandwidth), plan::PolicyKind::automatic);
  }
}

void print_policies(const Arguments& arguments) {
  const Step step(arguments.model, arguments.batch);
  const plan::Problem problem = step.problem(arguments.memory_bytes);
  const plan::Profile profile = profile_of(problem, arguments.bandwidth);
  fmt::print("{} batch {}, needs {:.1f} MB in memory; tier {:.0f} MB/s\n", arguments.model, arguments.batch,
             static_cast<double>(step.keep_capacity()) / 1e6, arguments.bandwidth / 1e6);
  print_head("policy");
  for (const plan::PolicyKind policy : plan::all_policies()) {
    print_row(plan::policy_name(policy), problem, profile, policy);
  }
}

void print_optimum() {
  // Other steps than those of the tests, by which `auto` was made.
  constexpr std::uint64_t kFirstSeed = 100001;
  int given_up = 0;
  const LongVector<plan::OptimumGap> gaps = plan::optimum_gaps(300, 50000, kFirstSeed, &given_up);
  LongVector<double> to_optimum, to_bound;
  for (const plan::OptimumGap& gap : gaps) {
    to_optimum.push_back(100 * gap.to_optimum);
    to_bound.push_back(100 * gap.to_bound);
  }
  fmt::print("auto on {} small steps ({} larger ones given up): how much longer its step is, in %\n",
             gaps.size(), given_up);
  fmt::print("{:>10} {:>16} {:>16}\n", "quantile", "than the optimum", "than the bound");
  for (const double p : {0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0}) {
    fmt::print("{:>10} {:>16.3f} {:>16.3f}\n", p, plan::quantile(to_optimum, p), plan::quantile(to_bound, p));
  }
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  int words = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--batch" && i + 1 < argc) {
      arguments.batch = std::stoll(argv[++i]);
    } else if (arg == "--memory" && i + 1 < argc) {
      arguments.memory_bytes = std::stoll(argv[++i]);
    } else if (arg == "--bandwidth" && i + 1 < argc) {
      arguments.bandwidth = std::stod(argv[++i]);
    } else {
      (words++ == 0 ? arguments.command : arguments.model) = arg;
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  try {
    if (arguments.command == "policies") {
      print_policies(arguments);
    } else if (arguments.command == "optimum") {
      print_optimum();
    } else {
      print_curve(arguments);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "planner_bench: {}\n", error.what());
    return 1;
  }
}
