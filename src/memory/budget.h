#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace penstock {

class Budget;

/// Bytes taken from a Budget; gives them back when it dies. Movable. The Budget must outlive it.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  std::int64_t size_bytes() const { return size_bytes_; }
  /// Gives the bytes back before the destructor does.
  void release();

 private:
  friend class Budget;
  Reservation(Budget* budget, std::string tag, std::int64_t size_bytes)
      : budget_(budget), tag_(std::move(tag)), size_bytes_(size_bytes) {}

  Budget* budget_ = nullptr;
  std::string tag_;
  std::int64_t size_bytes_ = 0;
};

/// The ledger of the memory budget: bytes are reserved here before memory is taken, under a tag that tells
/// what for. It takes no memory itself. Any thread may call.
class Budget {
 public:
  using Breakdown = std::map<std::string, std::int64_t>;

  explicit Budget(std::int64_t total_bytes);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// Throws UserError with the numbers when the bytes do not fit; nothing is reserved then.
  Reservation reserve(const std::string& tag, std::int64_t size_bytes);
  /// Whether reserve() of that many bytes would succeed now.
  bool fits(std::int64_t size_bytes) const;

  std::int64_t total_bytes() const { return total_bytes_; }
  std::int64_t reserved_bytes() const;
  std::int64_t free_bytes() const;
  std::int64_t peak_bytes() const;
  /// Reserved bytes of each tag now, and at the moment when the sum was highest.
  Breakdown breakdown() const;
  Breakdown peak_breakdown() const;

 private:
  friend class Reservation;
  void release(const std::string& tag, std::int64_t size_bytes);

  const std::int64_t total_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::int64_t reserved_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  Breakdown by_tag_;
  Breakdown by_tag_at_peak_;
};

}  // namespace penstock
