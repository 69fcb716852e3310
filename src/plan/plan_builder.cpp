#include "plan/plan_builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace penstock::plan {

PlanBuilder::PlanBuilder(const Problem& problem, Boundary start)
    : problem_(problem), start_(std::move(start)), states_(problem.storages.size()) {
  for (const Standing& standing : start_) {
    State& state = at(standing.storage);
    state.mapped = standing.resident;
    state.pending = standing.pending;
    const StorageInfo& storage = problem.storage(standing.storage);
    if (standing.resident) state.in_memory = storage.begin;
    if (standing.on_tier) state.on_tier = storage.begin;
    if (standing.resident) used_bytes_ += storage.footprint_bytes;
  }
  peak_bytes_ = used_bytes_;
}

void PlanBuilder::emit(Action action, std::int32_t id, std::int32_t variant) {
  instructions_.emplace_back(action, id, variant);
}

void PlanBuilder::map(ir::StorageId s) {
  require(!at(s).mapped, "plan builder: the storage has memory already");
  at(s).mapped = true;
  used_bytes_ += problem_.storage(s).footprint_bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
}

void PlanBuilder::acquire(ir::StorageId s) {
  map(s);
  at(s).in_memory = ir::kNone;
  emit(Action::acquire, s);
}

void PlanBuilder::swap_in(ir::StorageId s) {
  map(s);
  State& state = at(s);
  state.in_memory = state.on_tier;
  state.pending = Transfer::read;
  state.since = instructions_.size();
  emit(Action::swap_in, s);
}

void PlanBuilder::swap_out(ir::StorageId s) {
  State& state = at(s);
  require(state.mapped && !clean(s) && state.pending == Transfer::none, "plan builder: nothing to write out");
  state.before = state.on_tier;
  state.on_tier = state.in_memory;
  state.pending = Transfer::write;
  state.since = instructions_.size();
  emit(Action::swap_out, s);
}

void PlanBuilder::wait(ir::StorageId s) {
  State& state = at(s);
  require(state.pending != Transfer::none, "plan builder: nothing to wait for");
  state.pending = Transfer::none;
  state.since = kNever;
  emit(Action::wait, s);
}

void PlanBuilder::release(ir::StorageId s) {
  State& state = at(s);
  require(state.mapped && state.pending == Transfer::none, "plan builder: the storage cannot be released");
  state.mapped = false;
  used_bytes_ -= problem_.storage(s).footprint_bytes;
  emit(Action::release, s);
}

void PlanBuilder::adopt(const Overwrite& pair) {
  State &from = at(pair.from), &to = at(pair.to);
  require(from.mapped && from.pending == Transfer::none && !to.mapped,
          "plan builder: the storage cannot be written over");
  from.mapped = false;
  to.mapped = true;
  to.in_memory = ir::kNone;
  instructions_.emplace_back(Action::adopt, pair.to, 0, pair.from);
}

void PlanBuilder::run(ir::OpId op, std::int32_t variant) {
  const StepOp info = problem_.op(op);
  for (const Use& use : info.uses) {
    State& state = at(use.storage);
    if (state.pending == Transfer::read || (state.pending == Transfer::write && use.writes))
      wait(use.storage);
    if (use.writes) state.in_memory = use.made;
  }
  peak_bytes_ = std::max(peak_bytes_, used_bytes_ + info.scratch_bytes[static_cast<std::size_t>(variant)]);
  emit(Action::run, op, variant);
}

bool PlanBuilder::can_cancel(ir::StorageId s) const {
  return at(s).pending != Transfer::none && at(s).since != kNever;
}

void PlanBuilder::cancel(ir::StorageId s) {
  require(can_cancel(s), "plan builder: the transfer cannot be taken back");
  State& state = at(s);
  instructions_[state.since].id = ir::kNone;
  if (state.pending == Transfer::read) {
    state.mapped = false;
    used_bytes_ -= problem_.storage(s).footprint_bytes;
  } else {
    state.on_tier = state.before;
  }
  state.pending = Transfer::none;
  state.since = kNever;
}

Boundary PlanBuilder::boundary() const {
  Boundary standings;
  for (const ir::StorageId s : problem_.state()) {
    standings.push_back({s, at(s).mapped, !at(s).mapped || clean(s), at(s).pending});
  }
  return standings;
}

Plan PlanBuilder::finish(std::string policy) {
  Plan plan;
  plan.policy = std::move(policy);
  plan.budget_bytes = problem_.budget_bytes;
  plan.boundary = start_;
  std::erase_if(instructions_, [](const Instruction& in) { return in.id == ir::kNone; });
  plan.instructions = std::move(instructions_);
  return plan;
}

Boundary boundary_on_tier(const Problem& problem) {
  Boundary standings;
  for (const ir::StorageId s : problem.state()) {
    const bool swappable = problem.storage(s).swappable;
    standings.push_back({s, !swappable, swappable, Transfer::none});
  }
  return standings;
}

Boundary boundary_in_memory(const Problem& problem) {
  Boundary standings;
  for (const ir::StorageId s : problem.state()) standings.push_back({s, true, false, Transfer::none});
  return standings;
}

}  // namespace penstock::plan
