#include "tier/verified_tier.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kPage = 4 * kKiB;
constexpr std::int64_t kSample = 32;
constexpr std::int64_t kSamplesPerBlock = 256;

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

/// Where in a page of `page_bytes` the sample lies.
std::int64_t sample_offset(std::uint64_t key, std::int64_t page, std::int64_t page_bytes) {
  const auto places = static_cast<std::uint64_t>(page_bytes / kSample);
  return static_cast<std::int64_t>(mix(key + static_cast<std::uint64_t>(page)) % places) * kSample;
}

std::uint64_t hash_sampled(const std::byte* data, std::int64_t size_bytes, std::uint64_t key) {
  std::uint64_t hash = key;
  std::array<std::byte, kSamplesPerBlock * kSample> gathered;
  const std::int64_t pages = size_bytes / kPage;
  for (std::int64_t block = 0; block < pages; block += kSamplesPerBlock) {
    // The samples are gathered first, so that the memory can fetch many of them at a time.
    const std::int64_t count = std::min(kSamplesPerBlock, pages - block);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t page = block + i;
      std::memcpy(gathered.data() + i * kSample, data + page * kPage + sample_offset(key, page, kPage),
                  kSample);
    }
    hash = XXH3_64bits_withSeed(gathered.data(), static_cast<std::size_t>(count * kSample), hash);
  }
  const std::int64_t rest = size_bytes % kPage;
  const std::byte* last = data + pages * kPage;
  if (rest < 2 * kSample) return XXH3_64bits_withSeed(last, static_cast<std::size_t>(rest), hash);
  return XXH3_64bits_withSeed(last + sample_offset(key, pages, rest), kSample, hash);
}

}  // namespace

std::uint64_t hash_extent(const void* data, std::int64_t size_bytes, int extent, std::uint64_t generation,
                          VerifyMode mode) {
  if (mode == VerifyMode::off) return 0;
  const std::uint64_t key = mix(mix(static_cast<std::uint64_t>(extent) + 1) ^ generation);
  if (mode == VerifyMode::full) return XXH3_64bits_withSeed(data, static_cast<std::size_t>(size_bytes), key);
  return hash_sampled(static_cast<const std::byte*>(data), size_bytes, key);
}

VerifiedTier::VerifiedTier(std::unique_ptr<Tier> inner, VerifyMode mode)
    : inner_(std::move(inner)), mode_(mode), written_(static_cast<std::size_t>(inner_->extent_count())) {}

Ticket VerifiedTier::write(int extent, const void* data, Priority priority) {
  Written& written = written_.at(static_cast<std::size_t>(extent));
  ++written.generation;
  written.hash = hash_extent(data, extent_bytes(extent), extent, written.generation, mode_);
  return inner_->write(extent, data, priority);
}

Ticket VerifiedTier::read(int extent, void* data, Priority priority) {
  const Written& written = written_.at(static_cast<std::size_t>(extent));
  require(written.generation > 0, "an extent is read that was never written");
  const Ticket ticket = inner_->read(extent, data, priority);
  reads_.emplace(ticket, PendingRead{extent, data, written});
  return ticket;
}

void VerifiedTier::wait(Ticket ticket) {
  if (!error_.empty()) throw RunError(error_);
  inner_->wait(ticket);
  const auto found = reads_.find(ticket);
  if (found == reads_.end()) return;
  const PendingRead read = found->second;
  reads_.erase(found);
  const std::uint64_t hash =
      hash_extent(read.data, extent_bytes(read.extent), read.extent, read.expected.generation, mode_);
  if (hash == read.expected.hash) return;
  error_ = fmt::format(
      "extent {} ({}) came back from the tier different from what was written: damaged, stale or misplaced "
      "data; check "
      "the disk of the swap folder",
      read.extent, format_bytes(extent_bytes(read.extent)));
  throw RunError(error_);
}

}  // namespace penstock
