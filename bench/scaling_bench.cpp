// What the simulator predicts for many ranks: prints the tables of docs/scaling.md. Takes no measurement.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "plan/estimate.h"
#include "plan/make_plan.h"
#include "plan/simulator.h"
#include "session/program.h"

namespace {

using namespace penstock;  // NOLINT(google-build-using-namespace)

struct Machine {
  const char* name;
  double flops_per_second;
  double bytes_per_second;
};

struct Link {
  const char* name;
  double bandwidth;
};

constexpr Machine kMachines[] = {{"2 cores", 1.5e11, 1e10}, {"64 cores", 4e12, 2e11}};
constexpr Link kLinks[] = {{"10 Gb/s", 1.25e9 * 0.9}, {"100 Gb/s", 1.25e10 * 0.9}};
constexpr int kRanks[] = {8, 16, 32, 64, 128, 256, 512, 1024};
/// An exchange begins when the communication thread wakes up; a message costs it some microseconds.
constexpr double kLatencySeconds = 150e-6;
constexpr double kMessageSeconds = 3e-6;

struct Prediction {
  double one_rank_seconds = 0;
  plan::Simulation step;
};

Prediction predict(const session::Program& program, const Machine& machine, const Link& link, int ranks) {
  const lower::Executable& step = *program.training;
  plan::Problem problem =
      plan::make_problem(step.graph, step.scratch_bytes, plan::grain_rule(std::int64_t{1} << 50, 4096));
  plan::MachineEstimate estimate;
  estimate.flops_per_second = machine.flops_per_second;
  estimate.bytes_per_second = machine.bytes_per_second;
  plan::Profile profile = plan::estimate_profile(problem, estimate);
  profile.link = {ranks, link.bandwidth, kLatencySeconds, kMessageSeconds};
  plan::PlanOptions options;
  options.policy = plan::PolicyKind::keep;
  const plan::Plan plan = plan::make_plan(problem, options);
  Prediction prediction;
  prediction.step = plan::simulate(problem, plan, profile);
  for (std::size_t op = 0; op < profile.op_seconds.size(); ++op)
    prediction.one_rank_seconds += profile.op_seconds.at(op, 0);
  return prediction;
}

void print_table(const std::string& model, std::int64_t batch) {
  const Optimizer optimizer = Optimizer::sgd(0, 0.9F);
  ModelOptions options;
  options.batch = batch;
  options.channels = 3;
  options.image_size = 224;
  options.classes = 1000;
  fmt::print("### {}, batch {} a rank\n\n", model, batch);
  fmt::print("| ranks |");
  for (const Machine& machine : kMachines) {
    for (const Link& link : kLinks) fmt::print(" {}, {} |", machine.name, link.name);
  }
  fmt::print("\n|---|---|---|---|---|\n");
  for (const int ranks : kRanks) {
    session::ProgramRequest request;
    request.optimizer = &optimizer;
    request.exchange.ranks = ranks;
    request.exchange.in_flight_bytes = std::int64_t{1} << 30;
    const session::Program program = session::make_program(Network::model(model, options), request);
    fmt::print("| {} |", ranks);
    for (const Machine& machine : kMachines) {
      for (const Link& link : kLinks) {
        const Prediction made = predict(program, machine, link, ranks);
        const double hidden = 1 - made.step.link_stall_seconds / std::max(1e-9, made.step.link_seconds);
        fmt::print(" {:.2f} s, {:.0f} %, {:.0f} % hidden |", made.step.step_seconds,
                   100 * made.one_rank_seconds / made.step.step_seconds, 100 * hidden);
      }
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

}  // namespace

int main() {
  print_table("resnet50", 32);
  print_table("vgg16", 32);
  return 0;
}
