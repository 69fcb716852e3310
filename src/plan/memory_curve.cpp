#include "plan/memory_curve.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/long_vector.h"

namespace penstock::plan {

MemoryCurve::MemoryCurve(std::size_t size) : size_(static_cast<std::int64_t>(size)) {
  while (leaves_ < size_) leaves_ *= 2;
  nodes_.resize(static_cast<std::size_t>(2 * leaves_));
}

void MemoryCurve::add_all(const LongVector<std::int64_t>& bytes, std::int64_t first) {
  require(first >= 0 && first + static_cast<std::int64_t>(bytes.size()) <= size_,
          "memory curve: no such position");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    nodes_[static_cast<std::size_t>(leaves_ + first) + i].max += bytes[i];
  }
  for (auto i = static_cast<std::size_t>(leaves_) - 1; i >= 1; --i) {
    nodes_[i].max = std::max(nodes_[2 * i].max, nodes_[2 * i + 1].max) + nodes_[i].added;
  }
}

void MemoryCurve::add(std::int64_t first, std::int64_t last, std::int64_t bytes) {
  if (first > last) return;
  require(first >= 0 && last < size_, "memory curve: no such position");
  const auto node = [this](std::int64_t i) -> Node& { return nodes_[static_cast<std::size_t>(i)]; };
  std::int64_t left = first + leaves_, right = last + leaves_ + 1;
  for (std::int64_t l = left, r = right; l < r; l /= 2, r /= 2) {
    for (const std::int64_t whole : {l % 2 == 1 ? l++ : 0, r % 2 == 1 ? --r : 0}) {
      if (whole == 0) continue;
      node(whole).max += bytes;
      node(whole).added += bytes;
    }
  }
  for (std::int64_t bottom : {left, right - 1}) {
    for (bottom /= 2; bottom >= 1; bottom /= 2) {
      node(bottom).max = std::max(node(2 * bottom).max, node(2 * bottom + 1).max) + node(bottom).added;
    }
  }
}

std::int64_t MemoryCurve::max(std::int64_t first, std::int64_t last) const {
  require(first >= 0 && first <= last && last < size_, "memory curve: no such range");
  const auto node = [this](std::int64_t i) -> const Node& { return nodes_[static_cast<std::size_t>(i)]; };
  constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min() / 2;
  // What each side has found so far, with the additions of the nodes above it still to come.
  std::int64_t best_left = kNothing, best_right = kNothing;
  std::int64_t l = first + leaves_, r = last + leaves_;
  best_left = node(l).max;
  best_right = node(r).max;
  while (l / 2 != r / 2) {
    if (l % 2 == 0) best_left = std::max(best_left, node(l + 1).max);
    if (r % 2 == 1) best_right = std::max(best_right, node(r - 1).max);
    l /= 2;
    r /= 2;
    best_left += node(l).added;
    best_right += node(r).added;
  }
  std::int64_t best = std::max(best_left, best_right);
  for (l /= 2; l >= 1; l /= 2) best += node(l).added;
  return best;
}

}  // namespace penstock::plan
