#include "memory/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {

Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      tag_(std::move(other.tag_)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    tag_ = std::move(other.tag_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

Reservation::~Reservation() {
  release();
}

void Reservation::release() {
  if (budget_ != nullptr) budget_->release(tag_, size_bytes_);
  budget_ = nullptr;
  size_bytes_ = 0;
}

Budget::Budget(std::int64_t total_bytes) : total_bytes_(total_bytes) {
  require(total_bytes >= 0, "a budget is not negative");
}

Reservation Budget::reserve(const std::string& tag, std::int64_t size_bytes) {
  require(size_bytes >= 0, "a reservation is not negative");
  const std::lock_guard lock(mutex_);
  if (size_bytes > total_bytes_ - reserved_bytes_) {
    throw UserError(fmt::format("the memory budget of {} is too small: {} needs {}, and {} are taken already",
                                format_bytes(total_bytes_), tag, format_bytes(size_bytes),
                                format_bytes(reserved_bytes_)));
  }
  by_tag_[tag] += size_bytes;
  reserved_bytes_ += size_bytes;
  if (reserved_bytes_ > peak_bytes_) {
    peak_bytes_ = reserved_bytes_;
    by_tag_at_peak_ = by_tag_;
  }
  return Reservation(this, tag, size_bytes);
}

bool Budget::fits(std::int64_t size_bytes) const {
  return size_bytes <= free_bytes();
}

std::int64_t Budget::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

std::int64_t Budget::free_bytes() const {
  return total_bytes_ - reserved_bytes();
}

std::int64_t Budget::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

Budget::Breakdown Budget::breakdown() const {
  const std::lock_guard lock(mutex_);
  return by_tag_;
}

Budget::Breakdown Budget::peak_breakdown() const {
  const std::lock_guard lock(mutex_);
  return by_tag_at_peak_;
}

void Budget::release(const std::string& tag, std::int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ -= size_bytes;
  const auto entry = by_tag_.find(tag);
  entry->second -= size_bytes;
  if (entry->second == 0) by_tag_.erase(entry);
}

}  // namespace penstock
