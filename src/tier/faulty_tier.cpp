#include "tier/faulty_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {

/// Whole pages of its own.
class FaultyTier::Buffer {
 public:
  explicit Buffer(std::int64_t size_bytes)
      : bytes_(static_cast<std::size_t>(round_up(size_bytes, kTierAlignment))) {
    data_ = static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{kTierAlignment}));
    std::memset(data_, 0, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete (data_, std::align_val_t{kTierAlignment}); }
  std::byte* data() { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

namespace {

void flip_bit(void* data, std::int64_t size_bytes, std::byte bit) {
  if (size_bytes > 0) static_cast<std::byte*>(data)[size_bytes / 2] ^= bit;
}

// Not the same, or the second would mend the first.
constexpr std::byte kWrittenBit{0x10};
constexpr std::byte kReadBit{0x02};

}  // namespace

FaultyTier::FaultyTier(std::unique_ptr<Tier> inner, FaultyTierOptions options)
    : inner_(std::move(inner)), options_(options), random_(options.seed, RandomPurpose::synthetic, 0, 77) {}

FaultyTier::~FaultyTier() {
  // The inner tier may still use the replicas.
  inner_.reset();
}

std::uint32_t FaultyTier::random(std::uint32_t bound) {
  return random_.bits(draws_++) % bound;
}

int FaultyTier::neighbour(int extent) const {
  int next = (extent + 1) % extent_count();
  while (extent_offset(next) < 0) next = (next + 1) % extent_count();
  return next;
}

Ticket FaultyTier::write(int extent, const void* data, Priority /*priority*/) {
  return add(true, extent, const_cast<void*>(data));
}

Ticket FaultyTier::read(int extent, void* data, Priority /*priority*/) {
  return add(false, extent, data);
}

Ticket FaultyTier::add(bool is_write, int extent, void* data) {
  const std::int64_t index = requests_++;
  const Ticket ticket = ++last_ticket_;
  Request& request = open_[ticket];
  request.is_write = is_write;
  request.extent = extent;
  request.data = data;
  const auto& fault = options_.fault;
  if (fault && (index == fault->at || (fault->lasting && index > fault->at))) request.fault = fault->kind;
  if (!options_.random_order) {
    start(request);
  } else if (random(3) == 0) {
    start_one();
  }
  return ticket;
}

bool FaultyTier::start_one() {
  std::vector<Request*> ready;
  std::set<int> extents;
  for (auto& [ticket, request] : open_) {
    if (!request.started && extents.insert(request.extent).second) ready.push_back(&request);
  }
  if (ready.empty()) return false;
  start(*ready[random(static_cast<std::uint32_t>(ready.size()))]);
  return true;
}

void FaultyTier::start(Request& request) {
  request.started = true;
  if (!request.fault) {
    request.inner = request.is_write ? inner_->write(request.extent, request.data, Priority::normal)
                                     : inner_->read(request.extent, request.data, Priority::normal);
    return;
  }
  switch (*request.fault) {
    case TierFault::Kind::io_error:
    case TierFault::Kind::no_space:
    case TierFault::Kind::stale:
      return;
    case TierFault::Kind::flipped_bit:
      if (request.is_write) return start_damaged_write(request);
      request.inner = inner_->read(request.extent, request.data, Priority::normal);
      return;
    case TierFault::Kind::misplaced:
      if (request.is_write) return start_damaged_write(request);
      request.replica = std::make_unique<Buffer>(extent_bytes(neighbour(request.extent)));
      request.inner = inner_->read(neighbour(request.extent), request.replica->data(), Priority::normal);
      return;
  }
}

void FaultyTier::start_damaged_write(Request& request) {
  const bool elsewhere = *request.fault == TierFault::Kind::misplaced;
  const int target = elsewhere ? neighbour(request.extent) : request.extent;
  request.replica = std::make_unique<Buffer>(extent_bytes(target));
  const std::int64_t size_bytes = std::min(extent_bytes(request.extent), extent_bytes(target));
  std::memcpy(request.replica->data(), request.data, static_cast<std::size_t>(size_bytes));
  if (!elsewhere) flip_bit(request.replica->data(), size_bytes, kWrittenBit);
  request.inner = inner_->write(target, request.replica->data(), Priority::normal);
}

void FaultyTier::wait(Ticket ticket) {
  if (!error_.empty()) throw RunError(error_);
  const auto found = open_.find(ticket);
  if (found == open_.end()) return;
  Request& request = found->second;
  while (!request.started) start_one();
  if (options_.max_delay_seconds > 0) {
    const double share = random(1000) / 1000.0;
    std::this_thread::sleep_for(std::chrono::duration<double>(share * options_.max_delay_seconds));
  }
  if (request.inner != 0) inner_->wait(request.inner);
  if (request.fault == TierFault::Kind::io_error || request.fault == TierFault::Kind::no_space) {
    const bool full = request.fault == TierFault::Kind::no_space;
    error_ = fmt::format("{} extent {} failed: {}", request.is_write ? "writing" : "reading", request.extent,
                         full ? "No space left on device" : "Input/output error");
    throw RunError(error_);
  }
  if (!request.is_write && request.fault == TierFault::Kind::flipped_bit) {
    flip_bit(request.data, extent_bytes(request.extent), kReadBit);
  }
  if (!request.is_write && request.fault == TierFault::Kind::misplaced) {
    const std::int64_t size_bytes =
        std::min(extent_bytes(request.extent), extent_bytes(neighbour(request.extent)));
    std::memcpy(request.data, request.replica->data(), static_cast<std::size_t>(size_bytes));
  }
  open_.erase(found);
}

bool FaultyTier::done(Ticket ticket) {
  const auto found = open_.find(ticket);
  if (!error_.empty() || found == open_.end()) return true;
  if (!found->second.started) start_one();
  // A fault takes effect in wait(), so that only a plain request can be seen to be done.
  return found->second.started && !found->second.fault && inner_->done(found->second.inner);
}

}  // namespace penstock
