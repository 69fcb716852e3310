#include "plan/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"

namespace penstock::plan {
namespace {

/// What is wrong with an instruction; caught in check().
struct Violation {
  std::string what;
};

/// Where a storage's values are just now. kNone: none that could be used.
struct Held {
  bool mapped = false;
  Transfer pending = Transfer::none;
  bool has_extent = false;  ///< was on the tier at any time, where no places are told
  ir::TensorId in_memory = ir::kNone;
  ir::TensorId on_tier = ir::kNone;
};

class Checker {
 public:
  Checker(const Problem& problem, const Plan& plan)
      : problem_(problem), plan_(plan), held_(problem.storages.size()), ops_(problem.ops.size()) {
    for (std::size_t i = 0; i < problem.graph->ops.size(); ++i) {
      if (is_exchange(problem.graph->ops[i].kind)) exchanges_.push_back(static_cast<ir::OpId>(i));
    }
  }

  CheckResult check() {
    CheckResult result;
    try {
      begin();
      for (; at_ < plan_.instructions.size(); ++at_) step(plan_.instructions[at_]);
      end();
      result.summary = summary_;
    } catch (const Violation& violation) {
      result.ok = false;
      result.instruction = at_;
      result.message = place() + ": " + violation.what;
    }
    return result;
  }

 private:
  std::string place() const {
    if (at_ >= plan_.instructions.size()) return "end of the plan";
    const Instruction& in = plan_.instructions[at_];
    std::string text = "instruction " + std::to_string(at_) + " (" + action_name(in.action) + " ";
    const bool is_op = in.action == Action::run;
    const auto count = static_cast<std::int32_t>(is_op ? problem_.ops.size() : problem_.storages.size());
    if (in.id < 0 || in.id >= count) return text + std::to_string(in.id) + ")";
    return text + (is_op ? problem_.graph->op(in.id).name.text() : problem_.storage_name(in.id)) + ")";
  }

  std::string value_name(ir::TensorId value) const {
    if (value == kForeignValue) return "the other graph's state";
    return value == ir::kNone ? "nothing" : fmt::format("'{}'", problem_.graph->tensor(value).name);
  }

  void take(std::int64_t bytes) {
    used_bytes_ += bytes;
    summary_.peak_bytes = std::max(summary_.peak_bytes, used_bytes_);
    if (used_bytes_ > problem_.budget_bytes) {
      throw Violation{"needs " + std::to_string(used_bytes_) + " bytes, the budget is " +
                      std::to_string(problem_.budget_bytes)};
    }
  }

  /// From now on the storage's place on the tier is for its value alone.
  void take_tier(ir::StorageId s) {
    if (plan_.places.empty()) {
      Held& held = held_[static_cast<std::size_t>(s)];
      if (!held.has_extent) summary_.tier_bytes += place_bytes(problem_.storage(s).size_bytes);
      held.has_extent = true;
    } else {
      summary_.tier_bytes = std::max(summary_.tier_bytes, take_place(s));
    }
    if (summary_.tier_bytes > problem_.tier_bytes) {
      throw Violation{
          fmt::format("needs {} bytes on the tier, which has {}", summary_.tier_bytes, problem_.tier_bytes)};
    }
  }

  /// What others have there is lost. Returns where the place ends.
  std::int64_t take_place(ir::StorageId s) {
    const std::int64_t offset = plan_.places[static_cast<std::size_t>(s)];
    if (offset < 0) throw Violation{"it has no place on the tier"};
    const std::int64_t end = offset + place_bytes(problem_.storage(s).size_bytes);
    auto lies = lying_.lower_bound(offset);
    if (lies != lying_.begin() && std::prev(lies)->second.end > offset) --lies;
    while (lies != lying_.end() && lies->first < end) {
      const ir::StorageId other = lies->second.storage;
      Held& held = held_[static_cast<std::size_t>(other)];
      if (other != s && held.pending != Transfer::none) {
        throw Violation{"its place on the tier is that of '" + problem_.storage_name(other) +
                        "', which is being moved"};
      }
      held.on_tier = ir::kNone;
      lies = lying_.erase(lies);
    }
    if (end > offset) lying_.emplace(offset, Lying{end, s});
    return end;
  }

  /// That of state is nobody else's, at no time: it may be moved between steps, and by other plans.
  void check_places() const {
    if (plan_.places.empty()) return;
    if (plan_.places.size() != held_.size())
      throw Violation{"not every storage is told its place on the tier"};
    std::map<std::int64_t, Lying> state;
    for (const bool carried : {true, false}) {
      for (std::size_t s = 0; s < held_.size(); ++s) {
        const auto storage = static_cast<ir::StorageId>(s);
        const std::int64_t offset = plan_.places[s];
        const std::int64_t end = offset + place_bytes(problem_.storages[s].size_bytes);
        if (problem_.storages[s].carried != carried || offset == -1 || end == offset) continue;
        if (offset < 0 || offset % kTierGrain != 0 || offset > kFarthest) {
          throw Violation{
              fmt::format("'{}' has its place on the tier at {}", problem_.storage_name(storage), offset)};
        }
        const auto next = state.lower_bound(offset);
        const bool meets = (next != state.end() && next->first < end) ||
                           (next != state.begin() && std::prev(next)->second.end > offset);
        if (meets) {
          throw Violation{"'" + problem_.storage_name(storage) +
                          "' has its place on the tier where there is state"};
        }
        if (carried) state.emplace(offset, Lying{end, storage});
      }
    }
  }

  void begin() {
    check_places();
    for (const Standing& standing : plan_.boundary) {
      if (standing.storage < 0 || static_cast<std::size_t>(standing.storage) >= held_.size() ||
          !problem_.storage(standing.storage).carried) {
        throw Violation{"the boundary names storage " + std::to_string(standing.storage) +
                        ", which is not state"};
      }
      const StorageInfo& storage = problem_.storage(standing.storage);
      Held& held = held_[static_cast<std::size_t>(standing.storage)];
      const auto refuse = [&](const char* before, const char* after) {
        throw Violation{before + problem_.storage_name(standing.storage) + after};
      };
      if (held.mapped || held.on_tier != ir::kNone) refuse("the boundary names '", "' twice");
      if (!standing.resident && !standing.on_tier) refuse("the boundary loses '", "'");
      if (standing.pending != Transfer::none && !(standing.resident && standing.on_tier)) {
        refuse("the boundary has a transfer of '", "' without memory or tier");
      }
      if (standing.on_tier && !storage.swappable) refuse("'", "' cannot be on the tier");
      if (standing.on_tier) take_tier(standing.storage);
      held.mapped = standing.resident;
      held.pending = standing.pending;
      if (standing.resident && standing.pending != Transfer::read) held.in_memory = storage.begin;
      if (standing.on_tier && standing.pending != Transfer::write) held.on_tier = storage.begin;
      if (standing.resident) take(storage.footprint_bytes);
    }
    for (std::size_t s = 0; s < held_.size(); ++s) {
      if (problem_.storages[s].carried && !held_[s].mapped && held_[s].on_tier == ir::kNone) {
        throw Violation{"the boundary does not place '" +
                        problem_.storage_name(static_cast<ir::StorageId>(s)) + "'"};
      }
    }
    if (problem_.boundary) require_given_boundary();
  }

  void require_given_boundary() const {
    LongVector<const Standing*> given(held_.size(), nullptr);
    for (const Standing& standing : *problem_.boundary)
      given[static_cast<std::size_t>(standing.storage)] = &standing;
    for (const Standing& standing : plan_.boundary) {
      const Standing* wanted = given[static_cast<std::size_t>(standing.storage)];
      if (wanted == nullptr || *wanted != standing) {
        throw Violation{"the boundary of '" + problem_.storage_name(standing.storage) +
                        "' is not the given one"};
      }
    }
  }

  /// Talks to other ranks, which wait until it does.
  static bool is_exchange(ir::OpKind kind) {
    return ir::has_side_effects(kind) && kind != ir::OpKind::input && kind != ir::OpKind::output;
  }

  void step(const Instruction& in) {
    if (in.action == Action::run) return run(in);
    if (in.action == Action::adopt) return adopt(in);
    if (!adopted_.empty()) throw Violation{"the op that writes over what was adopted must run first"};
    if (in.id < 0 || static_cast<std::size_t>(in.id) >= held_.size())
      throw Violation{"there is no such storage"};
    const StorageInfo& storage = problem_.storage(in.id);
    Held& held = held_[static_cast<std::size_t>(in.id)];
    switch (in.action) {
      case Action::acquire:
        if (held.mapped) throw Violation{"it has memory already"};
        held.mapped = true;
        take(storage.footprint_bytes);
        break;
      case Action::swap_in:
        if (held.mapped) throw Violation{"it has memory already"};
        if (held.on_tier == ir::kNone) throw Violation{"the tier has no value of it"};
        held.mapped = true;
        held.pending = Transfer::read;
        summary_.swapped_in_bytes += storage.size_bytes;
        take(storage.footprint_bytes);
        break;
      case Action::swap_out:
        if (!storage.swappable) throw Violation{"it cannot be on the tier"};
        if (held.pending != Transfer::none) throw Violation{"a transfer of it is under way"};
        if (!holds_own_value(in.id)) throw Violation{"it holds no value"};
        if (held.in_memory == held.on_tier) throw Violation{"the tier has this value already"};
        take_tier(in.id);
        held.pending = Transfer::write;
        held.on_tier = ir::kNone;
        summary_.swapped_out_bytes += storage.size_bytes;
        break;
      case Action::wait:
        if (held.pending == Transfer::none) throw Violation{"no transfer of it is under way"};
        (held.pending == Transfer::read ? held.in_memory : held.on_tier) =
            held.pending == Transfer::read ? held.on_tier : held.in_memory;
        held.pending = Transfer::none;
        break;
      case Action::release:
        if (!held.mapped) throw Violation{"it has no memory"};
        if (held.pending != Transfer::none) throw Violation{"a transfer of it is under way"};
        held.mapped = false;
        held.in_memory = ir::kNone;
        used_bytes_ -= storage.footprint_bytes;
        break;
      case Action::run:
      case Action::adopt:
        break;
    }
  }

  /// Memory and value go from one storage to another of the same footprint.
  void adopt(const Instruction& in) {
    for (const std::int32_t id : {std::int32_t{in.id}, std::int32_t{in.from}}) {
      if (id < 0 || static_cast<std::size_t>(id) >= held_.size()) throw Violation{"there is no such storage"};
      if (problem_.storage(id).carried) throw Violation{"'" + problem_.storage_name(id) + "' is state"};
    }
    Held& to = held_[static_cast<std::size_t>(in.id)];
    Held& from = held_[static_cast<std::size_t>(in.from)];
    if (problem_.storage(in.id).footprint_bytes != problem_.storage(in.from).footprint_bytes ||
        problem_.storage(in.id).footprint_bytes == 0) {
      throw Violation{"'" + problem_.storage_name(in.from) + "' has another size"};
    }
    if (to.mapped) throw Violation{"it has memory already"};
    if (!holds_own_value(in.from)) throw Violation{"'" + problem_.storage_name(in.from) + "' holds no value"};
    if (from.pending != Transfer::none) {
      throw Violation{"a transfer of '" + problem_.storage_name(in.from) + "' is under way"};
    }
    to.mapped = true;
    to.in_memory = from.in_memory;
    from.mapped = false;
    from.in_memory = ir::kNone;
    adopted_.push_back({in.from, in.id});
  }

  /// Not what it took over from another storage.
  bool holds_own_value(ir::StorageId s) const {
    const ir::TensorId value = held_[static_cast<std::size_t>(s)].in_memory;
    return value == kForeignValue || (value != ir::kNone && problem_.graph->tensor(value).storage == s);
  }

  /// Whether the storage that adopted the input's memory holds it.
  bool is_adopted(ir::TensorId input) const {
    return std::any_of(adopted_.begin(), adopted_.end(), [&](const Overwrite& pair) {
      return held_[static_cast<std::size_t>(pair.to)].in_memory == input;
    });
  }

  void run(const Instruction& in) {
    if (in.id < 0 || static_cast<std::size_t>(in.id) >= ops_.size()) throw Violation{"there is no such op"};
    const ir::Op& op = problem_.graph->op(in.id);
    const StepOp info = problem_.op(in.id);
    if (in.variant < 0 || static_cast<std::size_t>(in.variant) >= info.scratch_bytes.size()) {
      throw Violation{"there is no variant " + std::to_string(in.variant)};
    }
    OpState& state = ops_[static_cast<std::size_t>(in.id)];
    if (ir::has_side_effects(op.kind) && state.runs > 0) {
      throw Violation{is_exchange(op.kind) ? "it would talk to the other ranks again"
                                           : "it would talk to the caller again"};
    }
    if (state.runs > 0 && state.variant != in.variant) {
      throw Violation{fmt::format("it ran with variant {} before, and another kernel may make other bits",
                                  state.variant)};
    }
    state.variant = in.variant;
    if (is_exchange(op.kind)) take_turn(in.id);
    for (const Overwrite& pair : adopted_) {
      if (std::find(info.overwrites.begin(), info.overwrites.end(), pair) == info.overwrites.end()) {
        throw Violation{fmt::format("it does not write '{}' over '{}'", problem_.storage_name(pair.to),
                                    problem_.storage_name(pair.from))};
      }
    }
    for (const ir::TensorId input : op.inputs) {
      const Held& held = held_[static_cast<std::size_t>(problem_.graph->tensor(input).storage)];
      if (held.pending == Transfer::read)
        throw Violation{"input " + value_name(input) + " is still being read"};
      if (held.in_memory != input && !is_adopted(input)) {
        throw Violation{"input " + value_name(input) + " is not in memory; its storage holds " +
                        value_name(held.in_memory)};
      }
    }
    for (const ir::TensorId output : op.outputs) {
      Held& held = held_[static_cast<std::size_t>(problem_.graph->tensor(output).storage)];
      if (!held.mapped) throw Violation{"output " + value_name(output) + " has no memory"};
      if (held.pending != Transfer::none) throw Violation{"output " + value_name(output) + " is being moved"};
      held.in_memory = output;
    }
    // What was taken over is for this op alone.
    for (const Overwrite& pair : adopted_) {
      if (!holds_own_value(pair.to)) held_[static_cast<std::size_t>(pair.to)].in_memory = ir::kNone;
    }
    adopted_.clear();
    const std::int64_t scratch_bytes = info.scratch_bytes[static_cast<std::size_t>(in.variant)];
    take(scratch_bytes);
    used_bytes_ -= scratch_bytes;
    ++summary_.runs;
    if (state.runs++ > 0) ++summary_.recomputed;
  }

  /// All ranks exchange in the order of the graph; one that does not would wait for the others for ever, or
  /// take one exchange's data for another's.
  void take_turn(ir::OpId op) {
    const ir::OpId turn = exchanges_[exchanged_++];
    if (turn == op) return;
    throw Violation{
        fmt::format("it is the turn of '{}' to talk to the other ranks", problem_.graph->op(turn).name)};
  }

  void end() const {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].runs == 0) throw Violation{"op '" + problem_.graph->ops[i].name + "' did not run"};
    }
    LongVector<const Standing*> standings(held_.size(), nullptr);
    for (const Standing& standing : plan_.boundary)
      standings[static_cast<std::size_t>(standing.storage)] = &standing;
    for (std::size_t s = 0; s < held_.size(); ++s) end_storage(static_cast<ir::StorageId>(s), standings[s]);
  }

  /// A transfer that the next step waits for may be complete already; all else must be as it was.
  void end_storage(ir::StorageId id, const Standing* standing) const {
    const StorageInfo& storage = problem_.storage(id);
    const Held& held = held_[static_cast<std::size_t>(id)];
    const auto refuse = [&](const std::string& what) {
      throw Violation{fmt::format("'{}' {}", problem_.storage_name(id), what)};
    };
    if (standing == nullptr) {
      if (held.mapped) refuse("still has memory");
      return;
    }
    if (held.mapped != standing->resident) {
      refuse(std::string(held.mapped ? "has memory" : "has no memory") + ", unlike at the beginning");
    }
    if (held.pending != Transfer::none && held.pending != standing->pending) {
      refuse("has a transfer under way, unlike at the beginning");
    }
    if (held.mapped && held.pending != Transfer::read && held.in_memory != storage.end) {
      refuse("holds " + value_name(held.in_memory) + " instead of " + value_name(storage.end));
    }
    const bool tier_promised = held.pending == Transfer::write || held.on_tier == storage.end;
    if (standing->on_tier && !tier_promised) {
      throw Violation{"the tier does not hold " + value_name(storage.end) + ", unlike at the beginning"};
    }
    if (held.pending == Transfer::read && held.on_tier != storage.end) {
      refuse("is being read from an old value");
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  LongVector<Held> held_;
  struct OpState {
    int runs = 0;
    std::int32_t variant = 0;
  };
  /// A value on the tier, or on its way there: who lies from an offset to `end`.
  struct Lying {
    std::int64_t end = 0;
    ir::StorageId storage = ir::kNone;
  };
  static constexpr std::int64_t kFarthest = std::int64_t{1} << 60;
  LongVector<OpState> ops_;
  std::map<std::int64_t, Lying> lying_;  ///< by offset; no two overlap
  LongVector<Overwrite> adopted_;        ///< since the last op ran
  LongVector<ir::OpId> exchanges_;       ///< ops that talk to other ranks, in the order of the graph
  std::size_t exchanged_ = 0;            ///< how many of them have
  std::size_t at_ = 0;
  std::int64_t used_bytes_ = 0;
  Summary summary_;
};

}  // namespace

CheckResult check(const Problem& problem, const Plan& plan) {
  return Checker(problem, plan).check();
}

void prove(const Problem& problem, Plan& plan) {
  const CheckResult result = check(problem, plan);
  if (!result.ok) throw InternalError("the plan of policy '" + plan.policy + "' is wrong: " + result.message);
  plan.summary = result.summary;
}

}  // namespace penstock::plan
