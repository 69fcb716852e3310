#include "plan/tier_lanes.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace penstock::plan {
namespace {

/// Rounding leaves a request a little short of its end.
constexpr double kDoneBytes = 0.5;

}  // namespace

TierLanes::TierLanes(const TierProfile& profile, std::size_t storages)
    : profile_(profile), open_(storages, false), is_write_(storages, false), intervals_(storages) {}

double TierLanes::rate(bool is_write) const {
  const bool together = !lanes_[0].requests.empty() && !lanes_[1].requests.empty();
  if (is_write) return together ? profile_.write_bandwidth_together : profile_.write_bandwidth;
  return together ? profile_.read_bandwidth_together : profile_.read_bandwidth;
}

void TierLanes::start(ir::StorageId storage, bool is_write, std::int64_t size_bytes, double now_seconds) {
  advance(now_seconds);
  const auto s = static_cast<std::size_t>(storage);
  require(!open_[s], "simulator: two requests for one storage");
  open_[s] = true;
  is_write_[s] = is_write;
  intervals_[s] = {-1, -1};
  lanes_[is_write ? 1 : 0].requests.push_back({storage, static_cast<double>(size_bytes)});
}

double TierLanes::wait(ir::StorageId storage, double now_seconds) {
  advance(now_seconds);
  const auto s = static_cast<std::size_t>(storage);
  if (open_[s] && profile_.serves_waiting_first) serve_alone(storage);
  while (open_[s]) advance_once(std::numeric_limits<double>::infinity());
  return std::max(now_seconds, intervals_[s].end_seconds + profile_.latency_seconds);
}

bool TierLanes::is_done(ir::StorageId storage, double now_seconds) {
  advance(now_seconds);
  const auto s = static_cast<std::size_t>(storage);
  return !open_[s] && intervals_[s].end_seconds + profile_.latency_seconds <= now_seconds;
}

bool TierLanes::cancel(ir::StorageId storage, double now_seconds) {
  advance(now_seconds);
  const auto s = static_cast<std::size_t>(storage);
  if (!open_[s] || intervals_[s].start_seconds >= 0) return false;
  std::erase_if(lanes_[is_write_[s] ? 1 : 0].requests,
                [&](const Request& request) { return request.storage == storage; });
  open_[s] = false;
  return true;
}

void TierLanes::serve_alone(ir::StorageId storage) {
  const bool is_write = is_write_[static_cast<std::size_t>(storage)];
  Lane& lane = lanes_[is_write ? 1 : 0];
  const auto found = std::find_if(lane.requests.begin(), lane.requests.end(),
                                  [&](const Request& request) { return request.storage == storage; });
  std::rotate(lane.requests.begin(), found, found + 1);
  const double bandwidth = is_write ? profile_.write_bandwidth : profile_.read_bandwidth;
  const double seconds = lane.requests.front().left_bytes / bandwidth;
  move_front(lane, seconds, bandwidth);
  now_seconds_ += seconds;
}

void TierLanes::advance(double until_seconds) {
  while (now_seconds_ < until_seconds) advance_once(until_seconds);
}

void TierLanes::advance_once(double until_seconds) {
  double seconds = until_seconds - now_seconds_;
  const double rates[2] = {rate(false), rate(true)};
  for (int i = 0; i < 2; ++i) {
    if (!lanes_[i].requests.empty())
      seconds = std::min(seconds, lanes_[i].requests.front().left_bytes / rates[i]);
  }
  for (int i = 0; i < 2; ++i) {
    if (!lanes_[i].requests.empty()) move_front(lanes_[i], seconds, rates[i]);
  }
  now_seconds_ += seconds;
}

void TierLanes::move_front(Lane& lane, double seconds, double bandwidth) {
  Request& request = lane.requests.front();
  const auto s = static_cast<std::size_t>(request.storage);
  if (intervals_[s].start_seconds < 0) intervals_[s].start_seconds = now_seconds_;
  lane.busy_seconds += seconds;
  request.left_bytes -= seconds * bandwidth;
  if (request.left_bytes > kDoneBytes) return;
  intervals_[s].end_seconds = now_seconds_ + seconds;
  open_[s] = false;
  lane.requests.pop_front();
}

}  // namespace penstock::plan
