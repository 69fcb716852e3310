#pragma once

#include <map>
#include <optional>

namespace penstock {

/// Consecutive units [first, first + count).
struct UnitRun {
  int first = 0;
  int count = 0;
  bool operator==(const UnitRun&) const = default;
};

/// A set of units, kept as the longest possible runs.
class RunSet {
 public:
  /// The units must not be in the set.
  void add(UnitRun run);
  /// The units must all be in the set.
  void remove(UnitRun run);
  bool empty() const { return runs_.empty(); }
  int units() const { return units_; }
  /// The shortest run of at least `count` units; among equals the first.
  std::optional<UnitRun> best_fit(int count) const;
  /// The longest run; among equals the first.
  std::optional<UnitRun> longest() const;
  std::optional<UnitRun> first() const;
  const std::map<int, int>& runs() const { return runs_; }

 private:
  std::map<int, int> runs_;  // first -> count
  int units_ = 0;
};

}  // namespace penstock
