#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/bytes.h"

namespace penstock::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kPipeInterval{5};

}  // namespace

std::string format_seconds(double seconds) {
  const auto whole = static_cast<long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_text(const Progress& progress) {
  std::string text =
      fmt::format("step {}/{}  loss {:.4f}  {:.{}f} images/s  {}", progress.step, progress.steps,
                  progress.loss, progress.images_per_second, progress.images_per_second < 100 ? 1 : 0,
                  format_bytes(progress.memory_bytes));
  if (progress.budget_bytes > 0) text += fmt::format(" of {}", format_bytes(progress.budget_bytes));
  if (progress.stall_share >= 0.005) text += fmt::format("  stall {:.0f} %", progress.stall_share * 100);
  if (progress.step < progress.steps) text += fmt::format("  {} left", format_seconds(progress.seconds_left));
  return text;
}

ProgressView::ProgressView(bool quiet) : quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {}

ProgressView::~ProgressView() {
  finish();
}

void ProgressView::step(const Progress& progress) {
  if (quiet_) return;
  const auto now = Clock::now();
  const bool last = progress.step == progress.steps;
  const bool first = last_ == Clock::time_point{};
  const auto interval =
      terminal_ ? std::chrono::duration_cast<Clock::duration>(kTerminalInterval) : kPipeInterval;
  if (!first && !last && now - last_ < interval) return;
  last_ = now;
  if (terminal_) {
    fmt::print("\r\x1b[K{}", progress_text(progress));
    live_ = true;
  } else {
    fmt::print("{}\n", progress_text(progress));
  }
  std::fflush(stdout);
}

void ProgressView::note(const std::string& line) {
  if (quiet_) return;
  finish();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void ProgressView::finish() {
  if (!live_) return;
  fmt::print("\n");
  std::fflush(stdout);
  live_ = false;
}

}  // namespace penstock::cli
