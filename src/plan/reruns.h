#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// A gap of at least so many ops is a long one: where the batch is cut, much else lies in it.
inline constexpr Position kLongGap = 24;

/// What becomes of a value that is made anew on the way to another: given up at once and made once more for
/// its own next use, or held until then. The rule: held, but where as good as nothing is (kHoldLittle) only
/// if its next use is soon.
enum class OnTheWay : std::uint8_t { by_rule, passes, held };

/// Decides which ops run again, and when, so that values need not be held in given gaps.
class Recomputer {
 public:
  /// What is held only to make a value anew is at most this part of it; where the tier has little space, as
  /// good as nothing.
  static constexpr std::int64_t kHoldFraction = 4, kHoldLittle = 64;

  /// The problem must outlive it.
  explicit Recomputer(const Problem& problem, std::int64_t hold_fraction = kHoldFraction);

  /// The ops that make the value in this gap anew if all else is there; empty if that cannot be.
  LongVector<ir::OpId> chain(ir::StorageId s, std::size_t access);
  /// What to run again if the values in all of `dropped` are: before its next use, each is made from what is
  /// there, or from what is dropped as well and made first. Takes out of `dropped` what cannot be made.
  /// `passing`: by storage, whether it is held for later uses when it is made on the way to another; null: as
  /// if all were OnTheWay::by_rule.
  LongVector<Rerun> reruns(SwapSet& dropped, const LongVector<OnTheWay>* passing = nullptr);

 private:
  struct Write {
    ir::OpId op;
    ir::TensorId tensor;
  };

  std::size_t storage_of(ir::TensorId t) const {
    return static_cast<std::size_t>(problem_.graph->tensor(t).storage);
  }
  ir::TensorId value_at(std::size_t s, ir::OpId at) const;
  bool is_far(std::size_t s, ir::OpId at) const;
  bool is_needed_from(std::size_t s, ir::OpId at) const;
  std::int64_t hold_bytes(ir::StorageId s) const;
  bool make(ir::TensorId value, ir::OpId at, std::int64_t hold_bytes, LongVector<ir::OpId>& ops) const;
  bool make_in_order(ir::TensorId value, ir::OpId at, std::int64_t hold_bytes,
                     LongVector<ir::OpId>& ops) const;
  bool try_reruns(SwapSet& dropped, const LongVector<OnTheWay>* passing, LongVector<Rerun>& found);
  bool passes(const LongVector<OnTheWay>* passing, std::size_t s, ir::OpId at) const;
  bool is_sound(const LongVector<ir::OpId>& ops, ir::OpId at) const;

  const Problem& problem_;
  std::int64_t hold_fraction_;
  LongVector<LongVector<Write>> writes_;  ///< by storage, ascending
  LongVector<std::uint8_t> missing_;      ///< by storage: its value is dropped just now
};

}  // namespace penstock::plan
