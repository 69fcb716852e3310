#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/long_vector.h"

namespace penstock {

/// Rows of unequal lengths, one behind the other in one array: a step may have hundreds of thousands, and a
/// vector for each would take several times the memory. They do not change; copies share them.
template <typename T>
class Rows {
 public:
  Rows() = default;
  /// Row i is values [first[i], first[i + 1]).
  Rows(LongVector<std::uint32_t> first, LongVector<T> values)
      : arrays_(std::make_shared<const Arrays>(Arrays{std::move(first), std::move(values)})),
        first_(arrays_->first.data()),
        values_(arrays_->values.data()) {}

  std::size_t size() const { return arrays_ ? arrays_->first.size() - 1 : 0; }
  std::span<const T> operator[](std::size_t row) const {
    return {values_ + first_[row], static_cast<std::size_t>(first_[row + 1] - first_[row])};
  }

 private:
  struct Arrays {
    LongVector<std::uint32_t> first;
    LongVector<T> values;
  };
  std::shared_ptr<const Arrays> arrays_;
  const std::uint32_t* first_ = nullptr;
  const T* values_ = nullptr;
};

/// Makes rows from the first to the last.
template <typename T>
class RowsBuilder {
 public:
  /// `values`: how many there will be at most, where that is known.
  explicit RowsBuilder(std::size_t rows, std::size_t values = 0) {
    first_.reserve(rows + 1);
    first_.push_back(0);
    values_.reserve(values);
  }

  void push_back(const T& value) { values_.push_back(value); }
  /// What the row under way has so far.
  std::span<T> row() { return std::span<T>(values_).subspan(first_.back()); }
  void end_row() { first_.push_back(static_cast<std::uint32_t>(values_.size())); }
  Rows<T> finish() {
    values_.shrink_to_fit();
    return Rows<T>(std::move(first_), std::move(values_));
  }

 private:
  LongVector<std::uint32_t> first_;
  LongVector<T> values_;
};

}  // namespace penstock
