#include "report/why_slower.h"

#include <fmt/format.h>

#include <vector>

#include "report/markup.h"

namespace penstock::report {
namespace {

/// A step is slower if it is by more than this share.
constexpr double kSlower = 0.1;
/// A part of the difference is named if it is at least this share of it.
constexpr double kWorthNaming = 0.25;
constexpr double kSlowTier = 0.85;
constexpr double kPressure = 0.05;
constexpr double kBusyElsewhere = 0.9;
constexpr std::int64_t kManyFaults = 50;

/// "reads at 300 MB/s where 900 MB/s were measured"; empty if it is not slower.
std::string slow_tier(const char* verb, double planned, double measured) {
  if (planned <= 0 || measured <= 0 || measured > kSlowTier * planned) return "";
  return fmt::format("{} at {} where {} were measured", verb, bandwidth_text(measured),
                     bandwidth_text(planned));
}

std::string why_stalled(const Figures& planned, const Figures& measured, double extra_seconds) {
  const std::string reads = slow_tier("reads", planned.read_bytes_per_second, measured.read_bytes_per_second);
  const std::string writes =
      slow_tier("writes", planned.written_bytes_per_second, measured.written_bytes_per_second);
  if (reads.empty() && writes.empty())
    return fmt::format("{} more is spent waiting for the tier, though it is as fast as measured",
                       seconds_text(extra_seconds));
  return fmt::format("the tier {}{}{}, which costs {} of waiting; something else may use the disk", reads,
                     reads.empty() || writes.empty() ? "" : " and ", writes, seconds_text(extra_seconds));
}

std::string why_computing(const Figures& measured, double extra_seconds) {
  std::string text = fmt::format("kernels take {} longer than profiled", seconds_text(extra_seconds));
  if (measured.cpu_share < kBusyElsewhere) {
    return text +
           fmt::format(": the compute threads had the cores for {} of that time, other programs for the rest",
                       percent_text(measured.cpu_share));
  }
  return text + ": other programs use the machine's memory or caches, or the processor runs slower";
}

}  // namespace

std::string why_slower(const Figures& planned, const Figures& measured) {
  const double extra = measured.step_seconds - planned.step_seconds;
  if (planned.step_seconds <= 0 || extra <= kSlower * planned.step_seconds) return "";
  std::vector<std::string> reasons;
  const double stall = measured.stall_seconds - planned.stall_seconds;
  const double compute = measured.compute_seconds - planned.compute_seconds;
  if (stall >= kWorthNaming * extra) reasons.push_back(why_stalled(planned, measured, stall));
  if (compute >= kWorthNaming * extra) reasons.push_back(why_computing(measured, compute));
  if (measured.memory_pressure >= kPressure) {
    reasons.push_back(fmt::format(
        "the machine is short of memory ({} of the time something waits for it): other programs need more "
        "than there is",
        percent_text(measured.memory_pressure)));
  }
  if (measured.major_faults >= kManyFaults) {
    reasons.push_back(fmt::format(
        "{} pages of this process were read from disk per step: memory was taken from it from outside",
        measured.major_faults));
  }
  if (reasons.empty()) reasons.emplace_back("the time is lost between the kernels, outside tier and compute");
  std::string text =
      fmt::format("a step takes {} where {} were planned (+{}): ", seconds_text(measured.step_seconds),
                  seconds_text(planned.step_seconds), percent_text(extra / planned.step_seconds));
  for (std::size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? "" : "; ") + reasons[i];
  return text;
}

}  // namespace penstock::report
