#include "tier/throttled_tier.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace penstock {

ThrottledTier::ThrottledTier(std::unique_ptr<Tier> inner, std::int64_t read_bytes_per_second,
                             std::int64_t write_bytes_per_second)
    : inner_(std::move(inner)),
      read_link_{read_bytes_per_second, Clock::now(), 0},
      write_link_{write_bytes_per_second, Clock::now(), 0} {}

void ThrottledTier::book(Link& link, Ticket ticket, std::int64_t size_bytes) {
  if (link.bytes_per_second == 0) return;
  const double seconds = static_cast<double>(size_bytes) / static_cast<double>(link.bytes_per_second);
  link.free_at = std::max(link.free_at, Clock::now()) +
                 std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  link.busy_seconds += seconds;
  ends_.emplace(ticket, link.free_at);
}

Ticket ThrottledTier::write(int extent, const void* data, Priority priority) {
  const Ticket ticket = inner_->write(extent, data, priority);
  book(write_link_, ticket, extent_bytes(extent));
  return ticket;
}

Ticket ThrottledTier::read(int extent, void* data, Priority priority) {
  const Ticket ticket = inner_->read(extent, data, priority);
  book(read_link_, ticket, extent_bytes(extent));
  return ticket;
}

void ThrottledTier::wait(Ticket ticket) {
  inner_->wait(ticket);
  const auto found = ends_.find(ticket);
  if (found == ends_.end()) return;
  const Clock::time_point start = Clock::now();
  if (found->second > start) {
    std::this_thread::sleep_until(found->second);
    ++stalls_;
    stall_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  }
  ends_.erase(found);
}

bool ThrottledTier::done(Ticket ticket) {
  const auto found = ends_.find(ticket);
  return (found == ends_.end() || found->second <= Clock::now()) && inner_->done(ticket);
}

TierStats ThrottledTier::stats() const {
  TierStats result = inner_->stats();
  if (read_link_.bytes_per_second > 0) result.read_seconds = read_link_.busy_seconds;
  if (write_link_.bytes_per_second > 0) result.write_seconds = write_link_.busy_seconds;
  result.stalls += stalls_;
  result.stall_seconds += stall_seconds_;
  return result;
}

}  // namespace penstock
