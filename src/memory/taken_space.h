#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/long_vector.h"

namespace penstock {

/// Offsets that are taken, as ranges [begin, end) in order that neither meet nor touch.
class TakenRanges {
 public:
  void add(std::int64_t begin, std::int64_t end);
  /// The end of a range that meets [begin, end); -1: none does.
  std::int64_t meets(std::int64_t begin, std::int64_t end) const;

 private:
  LongVector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// From instruction `first` to instruction `last`, both included, first <= last.
struct Stretch {
  std::int64_t first = 0, last = 0;
};

/// Which offsets are taken when. A tree over time: each node stands for some leaves, each leaf for a few
/// instructions. A stretch of time is a few whole nodes and a part of a leaf at either end, so a search looks
/// at the ranges of a few nodes, however much else is placed.
class TakenSpace {
 public:
  /// For instructions 0 to `instructions` - 1.
  explicit TakenSpace(std::int64_t instructions);

  void add(const Stretch& stretch, std::int64_t begin, std::int64_t end);
  /// The lowest offset, from `floor` on and a multiple of `alignment`, at which `bytes` are free during all
  /// the stretches.
  std::int64_t lowest_gap(std::span<const Stretch> stretches, std::int64_t bytes, std::int64_t alignment,
                          std::int64_t floor);

 private:
  /// Taken during a part of a leaf.
  struct Part {
    Stretch stretch;
    std::int64_t begin = 0, end = 0;
  };
  struct Node {
    TakenRanges some;  ///< at some time of this node's, by what was added at it or below it
    TakenRanges all;   ///< all the time, by what was added at it
  };
  /// The parts of a leaf that a search asks about.
  struct Query {
    const LongVector<Part>* parts = nullptr;
    Stretch stretch;
  };

  Stretch time_of(std::size_t node, std::size_t leaves_below) const;
  void add(std::size_t node, std::size_t leaves_below, const Stretch& stretch, std::int64_t begin,
           std::int64_t end);
  void collect(std::size_t node, std::size_t leaves_below, const Stretch& stretch);

  std::int64_t leaf_instructions_;
  std::size_t leaves_;
  LongVector<Node> nodes_;              // the root is 1, the children of n are 2n and 2n + 1
  LongVector<LongVector<Part>> parts_;  // by leaf
  // What a search looks at.
  LongVector<const TakenRanges*> ranges_;
  LongVector<Query> queries_;
};

}  // namespace penstock
