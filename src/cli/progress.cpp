#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/bytes.h"
#include "base/signals.h"

namespace penstock::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kPipeInterval{5};
constexpr int kUsualColumns = 80;

/// A part of the live line. Those of the highest rank go first when there is no room.
struct Part {
  std::string text;
  int rank = 0;
};

/// One column is left free: some terminals wrap when the last one is written.
int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns - 1;
  return std::max(1, static_cast<int>(size.ws_col) - 1);
}

std::string join(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    if (!text.empty()) text += "  ";
    text += part.text;
  }
  return text;
}

std::string rate(std::int64_t bytes, double seconds) {
  return fmt::format("{:.0f} MB/s", seconds > 0 ? static_cast<double>(bytes) / seconds / 1e6 : 0.0);
}

}  // namespace

std::string format_seconds(double seconds) {
  const auto whole = static_cast<long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate_text(double samples_per_second, std::int64_t tokens_per_sample) {
  const bool is_text = tokens_per_sample > 0;
  const double rate = samples_per_second * (is_text ? static_cast<double>(tokens_per_sample) : 1.0);
  return fmt::format("{:.{}f} {}/s", rate, rate < 100 ? 1 : 0, is_text ? "tokens" : "images");
}

std::string progress_text(const Progress& progress, int width) {
  std::vector<Part> parts;
  parts.push_back({fmt::format("step {}/{}", progress.step, progress.steps), 0});
  parts.push_back({fmt::format("loss {:.4f}", progress.loss), 1});
  if (progress.gradient_norm > 0) parts.push_back({fmt::format("norm {:.3g}", progress.gradient_norm), 7});
  parts.push_back({rate_text(progress.samples_per_second, progress.tokens_per_sample), 3});
  std::string memory = format_bytes(progress.memory_bytes);
  if (progress.budget_bytes > 0) memory += fmt::format(" of {}", format_bytes(progress.budget_bytes));
  parts.push_back({memory, 4});
  if (progress.stats.swapped_in_bytes + progress.stats.swapped_out_bytes > 0) {
    parts.push_back({fmt::format("stall {:.0f} %",
                                 100 * progress.stats.stall_seconds / std::max(progress.step_seconds, 1e-9)),
                     5});
    parts.push_back(
        {fmt::format("in {}  out {}", rate(progress.stats.swapped_in_bytes, progress.step_seconds),
                     rate(progress.stats.swapped_out_bytes, progress.step_seconds)),
         6});
  }
  if (progress.step < progress.steps)
    parts.push_back({fmt::format("{} left", format_seconds(progress.seconds_left)), 2});
  std::string text = join(parts);
  while (width > 0 && text.size() > static_cast<std::size_t>(width) && parts.size() > 1) {
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.rank < b.rank; }));
    text = join(parts);
  }
  if (width > 0) text.resize(std::min(text.size(), static_cast<std::size_t>(width)));
  return text;
}

std::string step_text(const Progress& progress) {
  std::string text =
      fmt::format("step {}/{}: loss {:.4f}, {:.3f} s: {:.3f} s in kernels", progress.step, progress.steps,
                  progress.loss, progress.step_seconds, progress.stats.compute_seconds);
  if (progress.stats.recompute_seconds > 0)
    text += fmt::format(" ({:.3f} s again)", progress.stats.recompute_seconds);
  if (progress.stats.swapped_in_bytes + progress.stats.swapped_out_bytes > 0) {
    text += fmt::format(", {:.3f} s stalled, in {} ({}), out {} ({})", progress.stats.stall_seconds,
                        format_bytes(progress.stats.swapped_in_bytes),
                        rate(progress.stats.swapped_in_bytes, progress.step_seconds),
                        format_bytes(progress.stats.swapped_out_bytes),
                        rate(progress.stats.swapped_out_bytes, progress.step_seconds));
  }
  text += fmt::format(", pool {}, process {}", format_bytes(progress.stats.peak_pool_bytes),
                      format_bytes(progress.memory_bytes));
  if (progress.budget_bytes > 0) text += fmt::format(" of {}", format_bytes(progress.budget_bytes));
  return text;
}

ProgressView::ProgressView(Detail detail) : detail_(detail), terminal_(isatty(STDOUT_FILENO) == 1) {}

ProgressView::~ProgressView() {
  finish();
}

void ProgressView::step(const Progress& progress) {
  if (detail_ == Detail::quiet) return;
  if (detail_ == Detail::verbose) return note(step_text(progress));
  const auto now = Clock::now();
  const bool last = progress.step == progress.steps;
  const bool first = last_ == Clock::time_point{};
  const auto interval =
      terminal_ ? std::chrono::duration_cast<Clock::duration>(kTerminalInterval) : kPipeInterval;
  if (!first && !last && now - last_ < interval) return;
  last_ = now;
  if (terminal_) {
    say(stdout, fmt::format("\r\x1b[K{}", progress_text(progress, terminal_width())));
    live_ = true;
  } else {
    say(stdout, progress_text(progress) + "\n");
  }
}

void ProgressView::phase(const Phase& phase) {
  if (detail_ != Detail::verbose) return;
  note(fmt::format("{:<8} {:>8.2f} s  {}", phase.name, phase.seconds, phase.detail));
}

void ProgressView::note(const std::string& line) {
  if (detail_ == Detail::quiet) return;
  finish();
  say(stdout, line + "\n");
}

void ProgressView::finish() {
  if (!live_) return;
  say(stdout, "\n");
  live_ = false;
}

}  // namespace penstock::cli
