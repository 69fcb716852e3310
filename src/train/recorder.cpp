#include "train/recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "base/text_file.h"
#include "memory/virtual_pool.h"
#include "report/run_report.h"
#include "report/trace_json.h"
#include "train/machine.h"

namespace penstock::training {
namespace {

report::RunReport describe(const Result& result) {
  report::RunReport run;
  run.model = result.model;
  run.policy = result.policy;
  run.tier = result.tier;
  run.pool = result.pool;
  run.version = version();
  run.weights_sha256 = result.weights_sha256;
  run.batch = result.batch;
  run.steps = result.steps;
  run.threads = result.threads;
  run.budget_bytes = result.budget_bytes;
  run.in_memory_bytes = result.in_memory_bytes;
  run.overhead_bytes = result.overhead_bytes;
  run.pool_bytes = result.pool_bytes;
  run.planned_peak_bytes = result.planned_peak_bytes;
  run.pool_peak_bytes = result.pool_peak_bytes;
  run.peak_rss_bytes = result.peak_rss_bytes;
  run.swapped_out_bytes = result.swapped_out_bytes;
  run.swapped_in_bytes = result.swapped_in_bytes;
  run.swap_file_bytes = result.swap_file_bytes;
  run.peak_by_tag = result.peak_by_tag;
  run.images_per_second = result.images_per_second;
  run.compute_seconds = result.compute_seconds;
  run.recompute_seconds = result.recompute_seconds;
  run.stall_seconds = result.stall_seconds;
  run.predicted_step_seconds = result.predicted_step_seconds;
  run.bound_seconds = result.bound_seconds;
  run.startup_seconds = result.startup_seconds;
  run.plan_seconds = result.plan_seconds;
  run.loss = result.loss;
  run.accuracy = result.accuracy;
  run.test_images = result.test_images;
  const std::size_t first = result.step_seconds.size() > 1 ? 1 : 0;
  run.step_seconds = upper_median(
      {result.step_seconds.begin() + static_cast<std::ptrdiff_t>(first), result.step_seconds.end()});
  return run;
}

}  // namespace

void Recorder::check() const {
  if (!on_) return;
  if (!options_.trace_file.empty()) check_writable(options_.trace_file, "--trace");
  if (!options_.report_file.empty()) check_writable(options_.report_file, "--report");
}

void Recorder::after_step(std::int64_t step, const run::Trace& events, const plan::Plan& plan) {
  if (!wanted()) return;
  if (plan.instructions != instructions_) {
    instructions_ = plan.instructions;
    steps_.clear();
    events_ = 0;
    first_step_ = step;
  }
  if (steps_.size() == kMaxSteps || (!steps_.empty() && events_ + events.events.size() > kMaxEvents)) return;
  steps_.push_back(events);
  events_ += events.events.size();
}

void Recorder::write(const Program& program, const MemoryPlan& plan, const Result& result) const {
  if (!wanted() || !plan.training) return;
  const plan::Problem problem = planned_problem(program, plan);
  const std::vector<report::StepView> steps =
      report::view_steps(problem, *plan.training, steps_, first_step_);
  if (!options_.trace_file.empty()) {
    write_file(options_.trace_file,
               report::trace_json(steps, fmt::format("penstock: {} batch {}", result.model, result.batch)));
  }
  if (options_.report_file.empty()) return;
  report::RunReport run = describe(result);
  run.command = options_.command;
  run.machine = machine_text();
  run.notes = notes_;
  run.planned_out_bytes = plan.training->summary.swapped_out_bytes;
  run.planned_in_bytes = plan.training->summary.swapped_in_bytes;
  // The last one is closest to how all others went.
  if (!steps.empty()) run.step = steps.back();
  run.layers = report::layer_uses(problem, *plan.training);
  if (plan.profile) {
    run.profile_measured = plan.profile->measured;
    run.predicted_stall_seconds =
        std::max(0.0, plan::simulate(problem, *plan.training, *plan.profile).stall_seconds);
  }
  write_file(options_.report_file, report::run_page(run));
}

}  // namespace penstock::training
