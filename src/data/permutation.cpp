#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace penstock {
namespace {

constexpr std::uint64_t kRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size)
    : random_(seed, RandomPurpose::shuffle, static_cast<std::uint64_t>(epoch), 0),
      size_(static_cast<std::uint64_t>(size)),
      half_bits_(
          static_cast<std::uint32_t>(std::max(1, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2))) {
  require(size >= 1 && size <= std::int64_t{1} << 62, "size of a permutation");
}

std::int64_t Permutation::operator()(std::int64_t place) const {
  require(place >= 0 && static_cast<std::uint64_t>(place) < size_, "place in a permutation");
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = random_.block(round << 32 | right)[0] & mask;
      const std::uint64_t before = left;
      left = right;
      right = before ^ mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace penstock
