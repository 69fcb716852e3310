#pragma once

#include <cstdint>
#include <deque>

#include "base/long_vector.h"
#include "plan/plan_builder.h"

namespace penstock::plan {

/// Storages in memory that nobody needs soon, oldest first: their copy-outs are under way or not needed, and
/// their memory is given back when it is wanted. Works on a builder, which must outlive it.
class RetireQueue {
 public:
  RetireQueue(const Problem& problem, PlanBuilder& builder)
      : problem_(problem), builder_(builder), ids_(problem.storages.size(), 0) {}

  bool contains(ir::StorageId s) const { return ids_[static_cast<std::size_t>(s)] != 0; }
  bool empty();
  /// Footprint of all that are in it.
  std::int64_t bytes() const { return bytes_; }
  /// The oldest; only where not empty.
  ir::StorageId front();
  /// Starts the copy-out of a value that the tier does not have, and puts the storage last.
  void add(ir::StorageId s);
  /// Puts it last without starting a copy-out.
  void add_as_is(ir::StorageId s);
  /// Starts the copy-outs that add_as_is() did not.
  void write_all();
  /// It is wanted again: takes it from the queue, and takes a copy-out back if that is still possible.
  void recall(ir::StorageId s);
  /// Whether the oldest is thought to be written by now; see pass().
  bool front_settled();
  /// Waits for the oldest and releases it.
  void pop();

  /// Tells that an op touched so many bytes. In place of a clock: copy-outs are taken to move one byte while
  /// compute touches four.
  void pass(std::int64_t touched_bytes) { clock_ += touched_bytes; }

 private:
  struct Entry {
    ir::StorageId storage;
    std::uint64_t id;  ///< stale if it is not the storage's present one
    std::int64_t settled_at;
  };
  void write(Entry& entry);
  void drop_stale();

  const Problem& problem_;
  PlanBuilder& builder_;
  std::deque<Entry> entries_;
  LongVector<std::uint64_t> ids_;
  std::uint64_t last_id_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t clock_ = 0;
  std::int64_t lane_free_at_ = 0;
};

}  // namespace penstock::plan
