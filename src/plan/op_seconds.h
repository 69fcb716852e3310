#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "base/long_vector.h"

namespace penstock::plan {

/// Seconds of each op's kernels, by op and variant. Copies share them until one is changed: a profile goes
/// through many hands, and a step may have hundreds of thousands of ops.
class OpSeconds {
 public:
  OpSeconds() = default;
  OpSeconds(std::initializer_list<std::initializer_list<double>> ops) {
    for (const auto& variants : ops) push_back(variants);
  }
  explicit OpSeconds(const LongVector<LongVector<double>>& ops) {
    for (const auto& variants : ops) push_back(variants);
  }

  std::size_t size() const {
    if (!table_) return 0;
    return table_->first.empty() ? table_->seconds.size() : table_->first.size() - 1;
  }
  bool empty() const { return size() == 0; }
  std::span<const double> operator[](std::size_t op) const {
    const Table& table = *table_;
    if (table.first.empty()) return {table.seconds.data() + op, 1};
    return {table.seconds.data() + table.first[op],
            static_cast<std::size_t>(table.first[op + 1] - table.first[op])};
  }
  double at(std::size_t op, std::size_t variant) const {
    return table_->seconds[(table_->first.empty() ? op : table_->first[op]) + variant];
  }

  void push_back(std::span<const double> variants);
  void push_back(std::initializer_list<double> variants) { push_back({variants.begin(), variants.size()}); }
  void push_back(const LongVector<double>& variants) { push_back(std::span<const double>(variants)); }
  void set(std::size_t op, std::size_t variant, double seconds);

  /// A vector for each op.
  LongVector<LongVector<double>> rows() const;
  bool operator==(const OpSeconds& other) const { return rows() == other.rows(); }

 private:
  struct Table {
    LongVector<std::uint32_t> first;  ///< where each op's begin, and the end; empty: each has one
    LongVector<double> seconds;
  };
  Table& own();

  std::shared_ptr<Table> table_;  ///< null: no ops
};

}  // namespace penstock::plan
