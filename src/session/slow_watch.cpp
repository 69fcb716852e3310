#include "session/slow_watch.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <utility>

namespace penstock::session {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", in microseconds; 0 where the kernel does not count.
double memory_pressure_seconds() {
  std::ifstream file("/proc/pressure/memory");
  std::string line;
  if (!std::getline(file, line)) return 0;
  const std::size_t total = line.find("total=");
  return total == std::string::npos ? 0 : 1e-6 * std::strtod(line.c_str() + total + 6, nullptr);
}

double rate(std::int64_t bytes, double busy_seconds) {
  return busy_seconds > 0 ? static_cast<double>(bytes) / busy_seconds : 0;
}

void add(StepStats& sum, const StepStats& stats) {
  sum.step_seconds += stats.step_seconds;
  sum.compute_seconds += stats.compute_seconds;
  sum.stall_seconds += stats.stall_seconds;
}

}  // namespace

OutsideCounts outside_counts() {
  OutsideCounts counts;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  counts.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  counts.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  counts.major_faults = usage.ru_majflt;
  counts.memory_pressure_seconds = memory_pressure_seconds();
  return counts;
}

SlowWatch::SlowWatch(const fit::Fit& fit, int threads, CountOutside count)
    : threads_(threads), count_(std::move(count)) {
  if (!fit.prediction) return;
  const plan::Simulation& simulation = *fit.prediction;
  const plan::Summary& summary = fit.training->plan.summary;
  planned_.step_seconds = simulation.step_seconds;
  planned_.compute_seconds = simulation.compute_seconds;
  planned_.stall_seconds = simulation.stall_seconds;
  planned_.read_bytes_per_second = rate(summary.swapped_in_bytes, simulation.read_seconds);
  planned_.written_bytes_per_second = rate(summary.swapped_out_bytes, simulation.write_seconds);
}

report::Figures SlowWatch::between(const Mark& first, const Mark& last, const StepStats& mean,
                                   double steps) const {
  report::Figures figures;
  figures.step_seconds = mean.step_seconds;
  figures.compute_seconds = mean.compute_seconds;
  figures.stall_seconds = mean.stall_seconds;
  figures.read_bytes_per_second =
      rate(last.tier.read_bytes - first.tier.read_bytes, last.tier.read_seconds - first.tier.read_seconds);
  figures.written_bytes_per_second = rate(last.tier.written_bytes - first.tier.written_bytes,
                                          last.tier.write_seconds - first.tier.write_seconds);
  const double wall = last.outside.wall_seconds - first.outside.wall_seconds;
  if (wall > 0) {
    figures.memory_pressure =
        (last.outside.memory_pressure_seconds - first.outside.memory_pressure_seconds) / wall;
  }
  figures.major_faults = static_cast<std::int64_t>(
      static_cast<double>(last.outside.major_faults - first.outside.major_faults) / steps);
  const double compute = mean.compute_seconds * steps * threads_;
  if (compute > 0)
    figures.cpu_share = std::min(1.0, (last.outside.cpu_seconds - first.outside.cpu_seconds) / compute);
  return figures;
}

std::optional<std::string> SlowWatch::after_step(const StepStats& stats, const TierStats& tier) {
  if (planned_.step_seconds <= 0) return std::nullopt;
  const Mark mark{stats, tier, count_()};
  ++steps_;
  if (!first_) {
    first_ = mark;
  } else {
    add(sum_, stats);
  }
  recent_.push_back(mark);
  if (recent_.size() <= kInARow) return std::nullopt;
  StepStats mean;
  bool all_slow = true;
  for (std::size_t i = 1; i < recent_.size(); ++i) {
    add(mean, recent_[i].stats);
    all_slow &= recent_[i].stats.step_seconds > planned_.step_seconds;
  }
  for (double* value : {&mean.step_seconds, &mean.compute_seconds, &mean.stall_seconds}) *value /= kInARow;
  const report::Figures measured = between(recent_.front(), recent_.back(), mean, kInARow);
  recent_.pop_front();
  if (told_ || !all_slow) return std::nullopt;
  const std::string why = report::why_slower(planned_, measured);
  if (why.empty()) return std::nullopt;
  told_ = true;
  return why;
}

std::string SlowWatch::whole_run() const {
  if (!first_ || steps_ < 2) return "";
  const auto steps = static_cast<double>(steps_ - 1);
  StepStats mean = sum_;
  for (double* value : {&mean.step_seconds, &mean.compute_seconds, &mean.stall_seconds}) *value /= steps;
  return report::why_slower(planned_, between(*first_, recent_.back(), mean, steps));
}

}  // namespace penstock::session
