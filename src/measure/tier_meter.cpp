#include "measure/tier_meter.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/median.h"

namespace penstock::measure {

void TierMeter::fill() {
  for (int i = 0; i < tier_.extent_count(); ++i) tier_.wait(tier_.write(i, buffer(i)));
}

double TierMeter::rate(bool reads, bool writes, std::int64_t bytes) {
  const int half = kMeteredExtents / 2;
  const std::int64_t round_bytes = half * tier_.extent_bytes(0);
  const auto rounds = std::max<std::int64_t>(1, bytes / round_bytes);
  const double begin = clock_seconds();
  std::vector<Ticket> before;
  // One round is always queued behind the one that is under way, as in a step.
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<Ticket> tickets;
    for (int i = 0; i < half; ++i) {
      if (reads) tickets.push_back(tier_.read(i, buffer(i)));
      if (writes) tickets.push_back(tier_.write(half + i, buffer(half + i)));
    }
    for (const Ticket ticket : before) tier_.wait(ticket);
    before = std::move(tickets);
  }
  for (const Ticket ticket : before) tier_.wait(ticket);
  return static_cast<double>(rounds * round_bytes) / (clock_seconds() - begin);
}

void TierMeter::latency(plan::Profile& profile) {
  std::vector<double> seconds, start_seconds;
  for (int i = 0; i < 9; ++i) {
    const double begin = clock_seconds();
    const Ticket ticket = tier_.read(kMeteredExtents, buffer(0));
    start_seconds.push_back(clock_seconds() - begin);
    tier_.wait(ticket);
    seconds.push_back(clock_seconds() - begin);
  }
  profile.tier.latency_seconds = median(seconds);
  profile.host.transfer_seconds = median(start_seconds);
}

void* TierMeter::buffer(int extent) const {
  return buffers_ + std::min(extent, kMeteredExtents - 1) * tier_.extent_bytes(0);
}

}  // namespace penstock::measure
