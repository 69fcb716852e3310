#pragma once

#include <cstdint>
#include <deque>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace penstock::plan {

/// A tier's two directions over simulated time: each moves its requests one after the other; while both are
/// busy they share the tier. Time only goes forward.
class TierLanes {
 public:
  /// When a request moved its bytes.
  struct Interval {
    double start_seconds = 0;
    double end_seconds = 0;
  };

  TierLanes(const TierProfile& profile, std::size_t storages);

  /// A storage has one request at a time.
  void start(ir::StorageId storage, bool is_write, std::int64_t size_bytes, double now_seconds);
  /// Waits at `now_seconds` for the storage's request; returns when it is complete.
  double wait(ir::StorageId storage, double now_seconds);
  /// Whether the storage has no request that is not complete by then.
  bool is_done(ir::StorageId storage, double now_seconds);
  /// Takes back a request that has not begun to move; false if it has.
  bool cancel(ir::StorageId storage, double now_seconds);
  /// Of the storage's last request, once it was waited for.
  Interval interval(ir::StorageId storage) const { return intervals_[static_cast<std::size_t>(storage)]; }
  double busy_seconds(bool is_write) const { return lanes_[is_write ? 1 : 0].busy_seconds; }

 private:
  struct Request {
    ir::StorageId storage = ir::kNone;
    double left_bytes = 0;
  };
  struct Lane {
    std::deque<Request> requests;
    double busy_seconds = 0;
  };

  double rate(bool is_write) const;
  /// Lets the front of each lane advance until `until_seconds` or until a request is complete.
  void advance_once(double until_seconds);
  void advance(double until_seconds);
  void move_front(Lane& lane, double seconds, double bandwidth);
  void serve_alone(ir::StorageId storage);

  TierProfile profile_;
  double now_seconds_ = 0;
  Lane lanes_[2];
  LongVector<bool> open_;
  LongVector<bool> is_write_;
  LongVector<Interval> intervals_;
};

}  // namespace penstock::plan
