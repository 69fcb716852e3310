#pragma once

#include <cstddef>
#include <cstdint>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// One run of an op.
struct OpRun {
  ir::OpId op = ir::kNone;
  std::int32_t variant = 0;
  bool repeated = false;  ///< the op ran before in this step
  std::int64_t scratch_bytes = 0;
};

/// What a Walker tells. Derive from it and hide what is of interest: the calls are not virtual. When an event
/// is told, the walker's state is already as the event leaves it.
struct PlanVisitor {
  /// At the beginning, for each storage of the state.
  void stands(const Standing& standing) { (void)standing; }
  /// `by`: acquire or swap_in.
  void got_memory(ir::StorageId storage, Action by) { (void)storage, (void)by; }
  void lost_memory(ir::StorageId storage) { (void)storage; }
  /// The next op finds in `to` what was in `from`, and writes over it.
  void adopted(ir::StorageId to, ir::StorageId from) { (void)to, (void)from; }
  /// Of a swap_in this follows got_memory().
  void started(ir::StorageId storage, Transfer direction) { (void)storage, (void)direction; }
  void waited(ir::StorageId storage, Transfer direction) { (void)storage, (void)direction; }
  /// The op's scratch is in use.
  void begins(const OpRun& run) { (void)run; }
  /// It is not any more, and the outputs are made.
  void ends(const OpRun& run) { (void)run; }
};

/// Follows a plan's instructions, step after step: where each storage is, which transfers are under way, how
/// much memory is in use. For whoever wants to know what a plan does; the plan must be one that the checker
/// accepts, because nothing is checked here (and the checker has its own way to follow a plan, so that a
/// mistake here cannot hide one in a plan). Problem and plan must outlive it.
class Walker {
 public:
  /// `follows_values`: whether holds() is to be known, which takes time.
  Walker(const Problem& problem, const Plan& plan, bool follows_values = false)
      : problem_(problem),
        plan_(plan),
        follows_values_(follows_values),
        storages_(problem.storages.size()),
        ran_(problem.graph->ops.size(), 0) {}

  bool is_resident(ir::StorageId s) const { return at(s).resident; }
  Transfer pending(ir::StorageId s) const { return at(s).pending; }
  /// Footprints of all that has memory, and the scratch of the op that runs.
  std::int64_t used_bytes() const { return used_bytes_; }
  /// The instruction that is being followed.
  std::size_t instruction() const { return instruction_; }
  /// The tensor whose value the storage's memory holds, or will hold once the read that is under way is
  /// complete; kNone: nothing of use. kForeignValue: another graph's.
  ir::TensorId holds(ir::StorageId s) const { return at(s).in_memory; }
  bool has_run(ir::OpId op) const { return ran_[static_cast<std::size_t>(op)] != 0; }

  /// Goes to the boundary. Call it once, before the first step.
  template <typename Visitor>
  void begin(Visitor& visitor);
  /// Follows one step; the next begins where it ends.
  template <typename Visitor>
  void step(Visitor& visitor);

 private:
  struct Storage {
    bool resident = false;
    Transfer pending = Transfer::none;
    ir::TensorId in_memory = ir::kNone;
    ir::TensorId on_tier = ir::kNone;
  };
  const Storage& at(ir::StorageId s) const { return storages_[static_cast<std::size_t>(s)]; }
  Storage& at(ir::StorageId s) { return storages_[static_cast<std::size_t>(s)]; }
  std::int64_t footprint(ir::StorageId s) const { return problem_.storage(s).footprint_bytes; }

  template <typename Visitor>
  void follow(const Instruction& in, Visitor& visitor);
  template <typename Visitor>
  void run(const Instruction& in, Visitor& visitor);
  void make_outputs(ir::OpId op);
  /// The state's next value is what the step began with.
  void turn();

  const Problem& problem_;
  const Plan& plan_;
  bool follows_values_;
  LongVector<Storage> storages_;
  LongVector<std::uint8_t> ran_;
  std::int64_t used_bytes_ = 0;
  std::size_t instruction_ = 0;
};

template <typename Visitor>
void Walker::begin(Visitor& visitor) {
  for (const Standing& standing : plan_.boundary) {
    const ir::TensorId value = problem_.storage(standing.storage).begin;
    at(standing.storage) = {standing.resident, standing.pending, standing.resident ? value : ir::kNone,
                            standing.on_tier ? value : ir::kNone};
    if (standing.resident) used_bytes_ += footprint(standing.storage);
  }
  for (const Standing& standing : plan_.boundary) visitor.stands(standing);
}

template <typename Visitor>
void Walker::step(Visitor& visitor) {
  ran_.assign(ran_.size(), 0);
  for (instruction_ = 0; instruction_ < plan_.instructions.size(); ++instruction_) {
    follow(plan_.instructions[instruction_], visitor);
  }
  if (follows_values_) turn();
}

template <typename Visitor>
void Walker::follow(const Instruction& in, Visitor& visitor) {
  if (in.action == Action::run) return run(in, visitor);
  Storage& storage = at(in.id);
  switch (in.action) {
    case Action::acquire:
    case Action::swap_in:
      storage.resident = true;
      storage.in_memory = in.action == Action::swap_in ? storage.on_tier : ir::kNone;
      used_bytes_ += footprint(in.id);
      visitor.got_memory(in.id, in.action);
      if (in.action == Action::acquire) return;
      storage.pending = Transfer::read;
      return visitor.started(in.id, Transfer::read);
    case Action::swap_out:
      storage.pending = Transfer::write;
      storage.on_tier = storage.in_memory;
      return visitor.started(in.id, Transfer::write);
    case Action::wait: {
      // A transfer that crosses the boundary may be waited for twice: where the step ends, and where it
      // begins.
      const Transfer direction = storage.pending;
      if (direction == Transfer::none) return;
      storage.pending = Transfer::none;
      return visitor.waited(in.id, direction);
    }
    case Action::release:
      storage.resident = false;
      storage.in_memory = ir::kNone;
      used_bytes_ -= footprint(in.id);
      return visitor.lost_memory(in.id);
    case Action::adopt:
      storage.resident = true;
      storage.in_memory = at(in.from).in_memory;
      at(in.from).resident = false;
      at(in.from).in_memory = ir::kNone;
      return visitor.adopted(in.id, in.from);
    case Action::run:
      return;
  }
}

template <typename Visitor>
void Walker::run(const Instruction& in, Visitor& visitor) {
  std::uint8_t& ran = ran_[static_cast<std::size_t>(in.id)];
  const OpRun run{in.id, in.variant, ran != 0,
                  problem_.op(in.id).scratch_bytes[static_cast<std::size_t>(in.variant)]};
  ran = 1;
  used_bytes_ += run.scratch_bytes;
  visitor.begins(run);
  used_bytes_ -= run.scratch_bytes;
  if (follows_values_) make_outputs(in.id);
  visitor.ends(run);
}

}  // namespace penstock::plan
