#include "session/division.h"

#include <algorithm>

#include "run/trace.h"

namespace penstock::session {

fit::Division divide(const Shares& shares) {
  fit::Division division;
  division.budget_bytes = shares.budget_bytes;
  division.beside = shares.reserved_bytes;
  const std::int64_t before = shares.scope == BudgetScope::session ? shares.resident_before_bytes : 0;
  division.beside["program"] = std::max<std::int64_t>(0, shares.resident_bytes - before);
  division.beside["conversion"] = shares.conversion_bytes;
  division.beside["outputs"] = shares.output_bytes;
  division.beside["ranks"] = shares.rank_bytes;
  division.beside["plan"] = shares.plan_bytes;
  division.beside["description"] = shares.description_bytes;
  // What is resident is not counted a second time.
  division.beside["margin"] = std::max(kLeastMarginBytes, kMarginBytes - shares.touched_bytes);
  if (shares.planner_bytes > 0 && shares.planner_bytes <= shares.budget_bytes / kPlannerShare)
    division.beside["planner"] = shares.planner_bytes;
  std::erase_if(division.beside, [](const auto& tag) { return tag.second == 0; });
  return division;
}

std::int64_t most_paged_bytes(std::int64_t budget_bytes) {
  constexpr std::int64_t kLeast = 8 * kMiB, kShare = 32;
  return std::max(kLeast, budget_bytes / kShare);
}

namespace {

// With 60,000 of them a process had 300 bytes more for each than is counted otherwise; the heap leaves gaps.
constexpr std::int64_t kState = 640;

/// In steps of so many ops and storages most vectors that have an entry for each are long enough to be paged.
constexpr std::int64_t kManyEntries = 64 * kKiB;

/// `heap_each`: what is in small vectors and lists all the same.
StepBytes split(std::int64_t ops, std::int64_t storages, std::int64_t bytes, std::int64_t heap_each) {
  if (ops + storages < kManyEntries) return {bytes, 0};
  const std::int64_t heap = std::min(bytes, (ops + storages) * heap_each);
  return {heap, bytes - heap};
}

constexpr std::int64_t kRunningHeapEach = 6;

}  // namespace

StepBytes plan_guess(std::int64_t ops, std::int64_t storages, std::int64_t states, bool records) {
  // Plan and profile, then where everything is while it runs, and how long each op took; then a step's
  // events.
  constexpr std::int64_t kBytesEach = 150, kRecordedEach = 160;
  const std::int64_t bytes = (ops + storages) * (kBytesEach + (records ? kRecordedEach : 0));
  StepBytes guess = split(ops, storages, bytes, kRunningHeapEach);
  guess.heap += states * kState;
  return guess;
}

StepBytes running_guess(std::int64_t ops, std::int64_t storages, std::int64_t states,
                        std::int64_t instructions, bool records) {
  // Of an op the last times, of a storage where it is, for executor, pool and tier.
  constexpr std::int64_t kEvent = sizeof(run::TraceEvent), kOp = 40, kStorage = 112;
  const std::int64_t bytes = (records ? instructions * kEvent : 0) + ops * kOp + storages * kStorage;
  StepBytes guess = split(ops, storages, bytes, kRunningHeapEach);
  guess.heap += states * kState;
  return guess;
}

StepBytes search_guess(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 1200;  // up to 900 were seen
  constexpr std::int64_t kHeapEach = 900;
  return split(ops, storages, (ops + storages) * kBytesEach, kHeapEach);
}

StepBytes walk_guess(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 600;  // 440 are asked for, for two pools; the heap leaves gaps
  constexpr std::int64_t kHeapEach = 100;
  return split(ops, storages, (ops + storages) * kBytesEach, kHeapEach);
}

std::int64_t planner_guess_bytes(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 4 * kKiB;
  return 2 * kMiB + (ops + storages) * kBytesEach;
}

}  // namespace penstock::session
