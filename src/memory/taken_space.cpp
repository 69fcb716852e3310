#include "memory/taken_space.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"

namespace penstock {
namespace {

constexpr std::size_t kMostLeaves = 4096;

bool covers(const Stretch& a, const Stretch& b) {
  return a.first <= b.first && b.last <= a.last;
}

bool meet(const Stretch& a, const Stretch& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

void TakenRanges::add(std::int64_t begin, std::int64_t end) {
  // Those that touch the new one become one with it.
  const auto low = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                    [](const auto& range, std::int64_t at) { return range.second < at; });
  auto high = low;
  for (; high != ranges_.end() && high->first <= end; ++high) {
    begin = std::min(begin, high->first);
    end = std::max(end, high->second);
  }
  if (low == high) {
    ranges_.insert(low, {begin, end});
    return;
  }
  *low = {begin, end};
  ranges_.erase(low + 1, high);
}

std::int64_t TakenRanges::meets(std::int64_t begin, std::int64_t end) const {
  const auto range = std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                                      [](std::int64_t at, const auto& r) { return at < r.second; });
  return range != ranges_.end() && range->first < end ? range->second : -1;
}

TakenSpace::TakenSpace(std::int64_t instructions)
    : leaf_instructions_(1),
      leaves_(std::bit_ceil(
          std::min(kMostLeaves, static_cast<std::size_t>(std::max<std::int64_t>(instructions, 1))))),
      nodes_(2 * leaves_),
      parts_(leaves_) {
  const auto leaves = static_cast<std::int64_t>(leaves_);
  leaf_instructions_ = std::max<std::int64_t>(1, (instructions + leaves - 1) / leaves);
}

Stretch TakenSpace::time_of(std::size_t node, std::size_t leaves_below) const {
  const auto first_leaf = static_cast<std::int64_t>(node * leaves_below - leaves_);
  const std::int64_t first = first_leaf * leaf_instructions_;
  return {first, first + static_cast<std::int64_t>(leaves_below) * leaf_instructions_ - 1};
}

void TakenSpace::add(const Stretch& stretch, std::int64_t begin, std::int64_t end) {
  add(1, leaves_, stretch, begin, end);
}

void TakenSpace::add(std::size_t node, std::size_t leaves_below, const Stretch& stretch, std::int64_t begin,
                     std::int64_t end) {
  const Stretch time = time_of(node, leaves_below);
  if (!meet(stretch, time)) return;
  nodes_[node].some.add(begin, end);
  if (covers(stretch, time)) {
    nodes_[node].all.add(begin, end);
  } else if (leaves_below == 1) {
    parts_[node - leaves_].push_back({stretch, begin, end});
  } else {
    add(2 * node, leaves_below / 2, stretch, begin, end);
    add(2 * node + 1, leaves_below / 2, stretch, begin, end);
  }
}

void TakenSpace::collect(std::size_t node, std::size_t leaves_below, const Stretch& stretch) {
  const Stretch time = time_of(node, leaves_below);
  if (!meet(stretch, time)) return;
  if (covers(stretch, time)) {
    ranges_.push_back(&nodes_[node].some);
    return;
  }
  ranges_.push_back(&nodes_[node].all);
  if (leaves_below == 1) {
    queries_.push_back({&parts_[node - leaves_], stretch});
    return;
  }
  collect(2 * node, leaves_below / 2, stretch);
  collect(2 * node + 1, leaves_below / 2, stretch);
}

std::int64_t TakenSpace::lowest_gap(std::span<const Stretch> stretches, std::int64_t bytes,
                                    std::int64_t alignment, std::int64_t floor) {
  ranges_.clear();
  queries_.clear();
  for (const Stretch& stretch : stretches) collect(1, leaves_, stretch);
  std::int64_t at = round_up(floor, alignment);
  // Whatever is in the way moves the offset up behind it, until nothing is.
  for (bool moved = true; moved;) {
    moved = false;
    for (const TakenRanges* ranges : ranges_) {
      for (std::int64_t end = ranges->meets(at, at + bytes); end >= 0; end = ranges->meets(at, at + bytes)) {
        at = round_up(end, alignment);
        moved = true;
      }
    }
    for (const Query& query : queries_) {
      for (const Part& part : *query.parts) {
        if (part.end <= at || part.begin >= at + bytes || !meet(part.stretch, query.stretch)) continue;
        at = round_up(part.end, alignment);
        moved = true;
      }
    }
  }
  return at;
}

}  // namespace penstock
