#pragma once

#include <map>
#include <optional>

#include "ir/graph.h"
#include "plan/profile.h"

namespace penstock::plan {

/// The link between ranks over simulated time: exchanges that a step's ops start and wait for, one after
/// the other. The graph must outlive it.
class LinkLane {
 public:
  struct Interval {
    double start_seconds = 0;
    double end_seconds = 0;
  };

  LinkLane(const ir::Graph& graph, const LinkProfile& profile) : graph_(graph), profile_(profile) {}

  /// When the op finds what it waits for; 0 if it waits for nothing.
  double ready_seconds(ir::OpId op) const;
  /// Starts the op's exchange once it has run; nothing if it has none.
  std::optional<Interval> start(ir::OpId op, double now_seconds);

 private:
  const ir::Graph& graph_;
  LinkProfile profile_;
  double free_seconds_ = 0;
  std::map<std::int32_t, double> end_seconds_;  ///< by bucket
};

}  // namespace penstock::plan
