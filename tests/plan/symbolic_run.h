#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// Runs plans on symbols in place of tensors, at the mercy of an adversary: memory that was just acquired
/// holds garbage, and so does everything that a transfer under way may have reached or not, and what an op
/// reads where it writes though its kernel cannot. A value is a hash of the op that made it, of its kernel
/// and of what it read; exchanges with other ranks also have in them how many came before. Shares nothing
/// with the checker.
class SymbolicRun {
 public:
  using Value = std::uint64_t;

  /// All must outlive it.
  SymbolicRun(const Problem& problem, const Plan& plan)
      : problem_(problem), plan_(plan), cells_(problem.storages.size()) {
    // Which kernel an op has is for the plan to say, but then it is the same each time.
    variants_.resize(problem.graph->ops.size(), -1);
    for (const Instruction& in : plan.instructions) {
      if (in.action != Action::run) continue;
      std::int32_t& variant = variants_[static_cast<std::size_t>(in.id)];
      if (variant < 0) variant = in.variant;
    }
    for (const Standing& standing : plan.boundary) {
      Cell& cell = at(standing.storage);
      const Value value = first_value(standing.storage);
      cell.mapped = standing.resident;
      cell.pending = standing.pending;
      cell.memory = standing.resident && standing.pending != Transfer::read ? value : garbage();
      cell.tier = standing.on_tier && standing.pending != Transfer::write ? value : garbage();
      cell.moving = value;
      if (standing.resident) used_bytes_ += problem.storage(standing.storage).footprint_bytes;
    }
  }

  /// What is wrong after `steps` steps; empty if all state is as running the graph's ops in order makes it,
  /// and so was each step's loss.
  std::string run(int steps) {
    std::vector<Value> state(problem_.storages.size());
    for (const ir::StorageId s : problem_.state()) state[static_cast<std::size_t>(s)] = first_value(s);
    for (int step = 0; step < steps && wrong_.empty(); ++step) {
      batches_ = exchanges_ = 0;
      step_ = step;
      for (const Instruction& in : plan_.instructions) obey(in);
      const Value loss = expect(state);
      if (problem_.graph->loss != ir::kNone && loss != loss_) wrong_ = "the loss is another";
    }
    std::int64_t boundary_bytes = 0;
    for (const Standing& standing : plan_.boundary) {
      Cell& cell = at(standing.storage);
      if (cell.pending != Transfer::none) complete(cell);
      const Value expected = state[static_cast<std::size_t>(standing.storage)];
      if (standing.resident) boundary_bytes += problem_.storage(standing.storage).footprint_bytes;
      if (standing.resident && (!cell.mapped || cell.memory != expected))
        wrong_ = "state in memory is another";
      if (standing.on_tier && cell.tier != expected) wrong_ = "state on the tier is another";
    }
    if (used_bytes_ != boundary_bytes) wrong_ = "memory is lost";
    return wrong_;
  }

 private:
  struct Cell {
    bool mapped = false;
    Transfer pending = Transfer::none;
    Value memory = 0, tier = 0;
    Value moving = 0;   ///< what the transfer moves
    bool torn = false;  ///< memory changed while the transfer was under way
  };

  Cell& at(ir::StorageId s) { return cells_[static_cast<std::size_t>(s)]; }
  static Value mix(Value a, Value b) {
    Value x = a * 0x9E3779B97F4A7C15U ^ (b + 0x7F4A7C15U + (a << 6U) + (a >> 2U));
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }
  Value garbage() { return mix(0xBAD, ++garbage_); }
  static Value first_value(ir::StorageId s) { return mix(0x57A7E, static_cast<Value>(s)); }

  static bool is_exchange(ir::OpKind kind) {
    return kind == ir::OpKind::reduce_start || kind == ir::OpKind::reduce_wait ||
           kind == ir::OpKind::gather_start || kind == ir::OpKind::gather_wait;
  }

  /// What the op makes of its inputs' values; `before`: how many batches were taken (by inputs) or exchanges
  /// made (by those) in this step before.
  Value made(ir::OpId op, std::int32_t variant, std::size_t output, const std::vector<Value>& inputs,
             int before) const {
    Value value = mix(mix(static_cast<Value>(op), static_cast<Value>(variant)), output + 1);
    for (const Value input : inputs) value = mix(value, input);
    const ir::OpKind kind = problem_.graph->op(op).kind;
    if (kind == ir::OpKind::input) value = mix(value, static_cast<Value>(1000 * step_ + before));
    if (is_exchange(kind)) value = mix(value, static_cast<Value>(before));
    return value;
  }

  /// Runs the graph's ops in order on the state; returns the loss.
  Value expect(std::vector<Value>& state) const {
    const ir::Graph& graph = *problem_.graph;
    std::vector<Value> values(graph.tensors.size(), 0);
    for (const ir::StorageId s : problem_.state()) {
      const ir::TensorId begin = problem_.storage(s).begin;
      if (begin >= 0) values[static_cast<std::size_t>(begin)] = state[static_cast<std::size_t>(s)];
    }
    int exchanges = 0;
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      std::vector<Value> inputs;
      for (const ir::TensorId t : graph.ops[i].inputs) inputs.push_back(values[static_cast<std::size_t>(t)]);
      const int before = is_exchange(graph.ops[i].kind) ? exchanges++ : 0;
      for (std::size_t o = 0; o < graph.ops[i].outputs.size(); ++o) {
        values[static_cast<std::size_t>(graph.ops[i].outputs[o])] =
            made(static_cast<ir::OpId>(i), variants_[i], o, inputs, before);
      }
    }
    for (const ir::StorageId s : problem_.state()) {
      const ir::TensorId end = problem_.storage(s).end;
      if (end >= 0) state[static_cast<std::size_t>(s)] = values[static_cast<std::size_t>(end)];
    }
    return graph.loss == ir::kNone ? 0 : values[static_cast<std::size_t>(graph.loss)];
  }

  void take(std::int64_t bytes) {
    used_bytes_ += bytes;
    if (used_bytes_ > problem_.budget_bytes) wrong_ = "memory runs out";
  }

  void complete(Cell& cell) {
    const Value moved = cell.torn ? garbage() : cell.moving;
    (cell.pending == Transfer::read ? cell.memory : cell.tier) = moved;
    cell.pending = Transfer::none;
  }

  void begin(Cell& cell, Transfer direction) {
    // Two at once, and each finds what the other left.
    cell.torn = cell.pending != Transfer::none;
    cell.pending = direction;
    cell.moving = direction == Transfer::read ? cell.tier : cell.memory;
    (direction == Transfer::read ? cell.memory : cell.tier) = garbage();
  }

  /// What others have at the storage's place on the tier is gone, and what is being moved there is torn.
  void write_over(ir::StorageId s) {
    if (plan_.places.empty()) return;
    const auto begin_of = [&](std::size_t i) { return plan_.places[i]; };
    const auto end_of = [&](std::size_t i) {
      return begin_of(i) + (problem_.storages[i].size_bytes + 4095) / 4096 * 4096;
    };
    const auto own = static_cast<std::size_t>(s);
    if (begin_of(own) < 0) wrong_ = "it has no place on the tier";
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (i == own || begin_of(i) < 0 || begin_of(i) >= end_of(own) || begin_of(own) >= end_of(i)) continue;
      cells_[i].tier = garbage();
      if (cells_[i].pending == Transfer::none) continue;
      cells_[i].torn = true;
      at(s).torn = true;
    }
  }

  void obey(const Instruction& in) {
    if (in.action == Action::run) return obey_run(in);
    Cell& cell = at(in.id);
    const std::int64_t bytes = problem_.storage(in.id).footprint_bytes;
    switch (in.action) {
      case Action::acquire:
      case Action::swap_in:
        if (cell.mapped) wrong_ = "memory is acquired twice";
        cell.mapped = true;
        cell.memory = garbage();
        if (in.action == Action::swap_in) begin(cell, Transfer::read);
        take(bytes);
        break;
      case Action::swap_out:
        if (!cell.mapped) wrong_ = "nothing is there to be written";
        begin(cell, Transfer::write);
        write_over(in.id);
        break;
      case Action::wait:
        if (cell.pending != Transfer::none) complete(cell);
        break;
      case Action::release:
        if (!cell.mapped) wrong_ = "memory is released twice";
        if (cell.pending != Transfer::none) wrong_ = "memory is released under a transfer";
        cell.mapped = false;
        cell.memory = garbage();
        take(-bytes);
        break;
      case Action::adopt: {
        Cell& from = at(in.from);
        if (cell.mapped || !from.mapped) wrong_ = "memory is taken over from nowhere, or twice";
        if (from.pending != Transfer::none) wrong_ = "memory is taken over under a transfer";
        cell.mapped = true;
        cell.memory = from.memory;
        from.mapped = false;
        from.memory = garbage();
        adopted_[in.from] = in.id;
        take(bytes - problem_.storage(in.from).footprint_bytes);
        break;
      }
      case Action::run:
        break;
    }
  }

  void obey_run(const Instruction& in) {
    const ir::Graph& graph = *problem_.graph;
    const ir::Op& op = graph.op(in.id);
    std::vector<Value> inputs;
    for (const ir::TensorId t : op.inputs) {
      const ir::StorageId s = graph.tensor(t).storage;
      const auto adopted = adopted_.find(s);
      const ir::StorageId found = adopted == adopted_.end() ? s : adopted->second;
      if (!at(found).mapped) wrong_ = "an input has no memory";
      inputs.push_back(found == s || can_overwrite(in.id, {s, found}) ? at(found).memory : garbage());
    }
    const int before = op.kind == ir::OpKind::input ? batches_++ : is_exchange(op.kind) ? exchanges_++ : 0;
    const std::int64_t scratch = problem_.op(in.id).scratch_bytes[static_cast<std::size_t>(in.variant)];
    take(scratch);
    take(-scratch);
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      Cell& cell = at(graph.tensor(op.outputs[o]).storage);
      if (!cell.mapped) wrong_ = "an output has no memory";
      if (cell.pending != Transfer::none) cell.torn = true;
      cell.memory = made(in.id, in.variant, o, inputs, before);
    }
    if (op.kind == ir::OpKind::output) loss_ = inputs[0];
    adopted_.clear();
  }

  /// Whether the op gets what it reads in `pair.from` if that lies where it finds `pair.to`: either its
  /// kernel can write over it, or it does not write there.
  bool can_overwrite(ir::OpId op, const Overwrite& pair) const {
    const std::span<const Overwrite> allowed = problem_.op(op).overwrites;
    if (std::find(allowed.begin(), allowed.end(), pair) != allowed.end()) return true;
    const auto& outputs = problem_.graph->op(op).outputs;
    return std::none_of(outputs.begin(), outputs.end(),
                        [&](ir::TensorId t) { return problem_.graph->tensor(t).storage == pair.to; });
  }

  const Problem& problem_;
  const Plan& plan_;
  std::vector<Cell> cells_;
  std::map<ir::StorageId, ir::StorageId> adopted_;  ///< until the next op has run: whose value is where
  std::int64_t used_bytes_ = 0;
  std::uint64_t garbage_ = 0;
  std::vector<std::int32_t> variants_;  ///< by op
  int batches_ = 0, exchanges_ = 0, step_ = 0;
  Value loss_ = 0;
  std::string wrong_;
};

}  // namespace penstock::plan
