#include "session/recorder.h"

#include <fmt/format.h>

#include "base/text_file.h"
#include "measure/machine.h"
#include "report/run_report.h"
#include "report/trace_json.h"

namespace penstock::session {

void Recorder::after_step(std::int64_t step, const run::Trace& events, const plan::Plan& plan) {
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

void Recorder::write(const fit::Fit& fit, const RunFacts& facts, const RunStory& story,
                     const std::string& trace_file, const std::string& report_file) const {
  const plan::Problem& problem = fit.training->problem;
  const plan::Plan& plan = fit.training->plan;
  const std::vector<report::StepView> steps = report::view_steps(problem, plan, steps_, first_step_);
  if (!trace_file.empty()) {
    write_file(trace_file,
               report::trace_json(steps, fmt::format("penstock: {} batch {}", story.title, story.batch)));
  }
  if (report_file.empty()) return;
  report::RunReport run;
  run.story = story;
  run.plan = facts.plan;
  run.tier = facts.tier;
  run.threads = facts.threads;
  run.pool_peak_bytes = facts.pool_peak_bytes;
  run.peak_rss_bytes = facts.peak_rss_bytes;
  run.peak_by_tag = facts.peak_by_tag;
  run.plan_seconds = facts.plan.plan_seconds;
  run.machine = measure::machine_text();
  run.version = version();
  // The last one is closest to how all others went.
  if (!steps.empty()) run.step = steps.back();
  run.layers = report::layer_uses(problem, plan);
  run.profile_measured = fit.profile && fit.profile->measured;
  write_file(report_file, report::run_page(run));
}

}  // namespace penstock::session
