#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "plan/simulator.h"
#include "run/trace.h"

namespace penstock::report {

/// What works on an event.
enum class Lane : std::uint8_t { compute, reads, writes, network };
inline constexpr int kLanes = 4;
const char* lane_name(Lane lane);

/// How an event is shown.
enum class Kind : std::uint8_t { forward, backward, update, recompute, stall, transfer };
const char* kind_name(Kind kind);

/// Something that took time, by name.
struct LaneEvent {
  Lane lane = Lane::compute;
  Kind kind = Kind::forward;
  std::string name;       ///< the op, or the tensor that was moved or waited for
  std::string operation;  ///< of an op: "conv", "batch_norm"
  double start_seconds = 0;
  double end_seconds = 0;
  std::int64_t size_bytes = 0;  ///< of a transfer
};

/// One step as it went. Within a lane events do not overlap. Plain data; needs neither graph nor plan any
/// more.
struct StepView {
  std::int64_t step = 0;
  double start_seconds = 0;
  double end_seconds = 0;
  std::vector<LaneEvent> events;              ///< by lane, then by time
  std::vector<plan::MemoryPoint> memory;      ///< bytes of the pool
  std::vector<plan::MemoryPoint> prefetched;  ///< of these, read in (or being read) ahead of their use
  std::vector<plan::MemoryPoint> in_memory;   ///< what everything kept in memory would take at the same time
};

/// What the traces of steps in a row (from `first_step`, all by one plan) say, with names, and the memory
/// that the plan's instructions held meanwhile. A transfer counts from its request, or from the end of the
/// one before it in its direction, since a tier serves one after the other.
std::vector<StepView> view_steps(const plan::Problem& problem, const plan::Plan& plan,
                                 std::span<const run::Trace> traces, std::int64_t first_step = 1);

}  // namespace penstock::report
