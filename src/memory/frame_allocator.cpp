#include "memory/frame_allocator.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"

namespace penstock {
namespace {

/// A tail in more pieces than this costs more calls than breaking another frame is worth.
constexpr std::size_t kMaxTailPieces = 4;

}  // namespace

void append_run(std::vector<UnitRun>& runs, const UnitRun& run) {
  if (!runs.empty() && runs.back().first + runs.back().count == run.first) {
    runs.back().count += run.count;
  } else {
    runs.push_back(run);
  }
}

FrameAllocator::FrameAllocator(int units, int units_per_frame, int free_units)
    : units_per_frame_(units_per_frame), whole_frames_(units / units_per_frame) {
  free_in_frame_.assign(static_cast<std::size_t>(whole_frames_) + 1, 0);
  release({{0, free_units}});
}

std::vector<UnitRun> FrameAllocator::allocate(int units) {
  require(units <= free_units(), "the pool's plan asks for more memory than is free");
  std::vector<UnitRun> runs;
  const int body = std::min(units / units_per_frame_, frames_.units());
  take_frames(body, runs);
  take_fragments(units - body * units_per_frame_, runs);
  return runs;
}

void FrameAllocator::take_frames(int count, std::vector<UnitRun>& into) {
  while (count > 0) {
    auto found = frames_.best_fit(count);
    if (!found) found = frames_.longest();
    UnitRun run = *found;
    // Bodies from the upper end, tails from the lower one: so the frames that get broken are mostly the same
    // ones.
    if (run.count > count) run = {run.first + run.count - count, count};
    frames_.remove(run);
    for (int frame = run.first; frame < run.first + run.count; ++frame) {
      free_in_frame_[static_cast<std::size_t>(frame)] = 0;
    }
    append_run(into, {run.first * units_per_frame_, run.count * units_per_frame_});
    count -= run.count;
  }
}

void FrameAllocator::take_fragments(int count, std::vector<UnitRun>& into) {
  while (count > 0) {
    if (!frames_.empty() && !few_fragments_hold(count)) break_frame(frames_.first()->first);
    auto found = fragments_.best_fit(count);
    if (!found) found = fragments_.longest();
    const UnitRun run{found->first, std::min(found->count, count)};
    fragments_.remove(run);
    for (int unit = run.first; unit < run.first + run.count; ++unit) {
      --free_in_frame_[static_cast<std::size_t>(unit / units_per_frame_)];
    }
    append_run(into, run);
    count -= run.count;
  }
}

void FrameAllocator::take(const UnitRun& run) {
  const int end = run.first + run.count;
  for (int unit = run.first; unit < end;) {
    const int frame = unit / units_per_frame_;
    const int stop = std::min(end, (frame + 1) * units_per_frame_);
    int& free = free_in_frame_[static_cast<std::size_t>(frame)];
    if (frame < whole_frames_ && free == units_per_frame_) break_frame(frame);
    fragments_.remove({unit, stop - unit});
    free -= stop - unit;
    unit = stop;
  }
}

bool FrameAllocator::few_fragments_hold(int count) const {
  std::array<int, kMaxTailPieces> longest{};
  for (const auto& [first, length] : fragments_.runs()) {
    if (length >= count) return true;
    if (length > longest.back()) {
      longest.back() = length;
      std::sort(longest.begin(), longest.end(), std::greater<>());
    }
  }
  int sum = 0;
  for (const int length : longest) sum += length;
  return sum >= count;
}

void FrameAllocator::break_frame(int frame) {
  frames_.remove({frame, 1});
  fragments_.add({frame * units_per_frame_, units_per_frame_});
}

void FrameAllocator::release(const std::vector<UnitRun>& runs) {
  for (const UnitRun& run : runs) {
    int unit = run.first;
    const int end = run.first + run.count;
    while (unit < end) {
      const int frame = unit / units_per_frame_;
      const int stop = std::min(end, (frame + 1) * units_per_frame_);
      int& free = free_in_frame_[static_cast<std::size_t>(frame)];
      fragments_.add({unit, stop - unit});
      free += stop - unit;
      if (frame < whole_frames_ && free == units_per_frame_) {
        fragments_.remove({frame * units_per_frame_, units_per_frame_});
        frames_.add({frame, 1});
      }
      unit = stop;
    }
  }
}

}  // namespace penstock
