#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "plan/walker.h"
#include "report/layers.h"
#include "report/markup.h"

namespace penstock::report {
namespace {

constexpr std::size_t kSuggestions = 8;
constexpr std::size_t kUsesShown = 10;

/// The storages that a name stands for: a tensor's, or those that an op writes.
std::vector<ir::StorageId> find(const ir::Graph& graph, const std::string& name) {
  std::vector<ir::StorageId> found;
  const auto add = [&](ir::TensorId t) {
    const ir::StorageId storage = graph.tensor(t).storage;
    if (std::find(found.begin(), found.end(), storage) == found.end()) found.push_back(storage);
  };
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].name == name) add(static_cast<ir::TensorId>(t));
  }
  for (const ir::Op& op : graph.ops) {
    if (op.name != name) continue;
    for (const ir::TensorId t : op.outputs) add(t);
  }
  if (!found.empty()) return found;
  std::string similar;
  std::size_t count = 0;
  for (const ir::Tensor& tensor : graph.tensors) {
    if (tensor.name.text().find(name) == std::string::npos || count == kSuggestions) continue;
    similar += (count++ == 0 ? "" : ", ") + tensor.name;
  }
  throw UserError(fmt::format("'{}': there is no such tensor or op; {}", name,
                              similar.empty() ? "`penstock show MODEL` lists them" : "there are " + similar));
}

/// Follows one storage through the plan's instructions.
class Explanation : public plan::PlanVisitor {
 public:
  Explanation(const plan::Problem& problem, const plan::Plan& plan, const plan::Profile& profile,
              ir::StorageId storage)
      : problem_(problem),
        plan_(plan),
        profile_(profile),
        id_(storage),
        info_(problem.storage(storage)),
        walker_(problem, plan) {}

  std::vector<std::string> lines() {
    lines_.push_back(what());
    lines_.push_back("  uses: " + uses());
    const Gap gap = longest_gap();
    if (gap.from != ir::kNone) {
      lines_.push_back(fmt::format("  longest gap: {} ops, {} of compute, between op {} {} and op {} {}",
                                   gap.ops, seconds_text(gap.seconds), gap.from,
                                   problem_.graph->op(gap.from).name, gap.to,
                                   problem_.graph->op(gap.to).name));
    }
    walker_.begin(*this);
    walker_.step(*this);
    lines_.push_back("  " + verdict());
    if (gap.from != ir::kNone || info_.carried) costs(gap);
    return lines_;
  }

  // What happens to it between which ops, and how much memory is free meanwhile.
  void stands(const plan::Standing& standing) {
    if (standing.storage != id_) return;
    if (!standing.resident) say("on the tier when the step begins");
    if (standing.pending == plan::Transfer::read) say("being read when the step begins");
    if (standing.pending == plan::Transfer::write) say("being written when the step begins");
  }
  void lost_memory(ir::StorageId storage) {
    if (storage == id_) say("memory is given back " + when());
  }
  void adopted(ir::StorageId to, ir::StorageId from) {
    if (from == id_) say(fmt::format("'{}' is written over it {}", problem_.storage_name(to), when()));
  }
  void started(ir::StorageId storage, plan::Transfer direction) {
    if (storage != id_) return;
    if (direction == plan::Transfer::write) say("write starts " + when());
    if (direction == plan::Transfer::read) say("read starts " + when() + ahead(walker_.instruction() + 1));
  }
  void begins(const plan::OpRun& run) {
    const std::int64_t free = problem_.budget_bytes - walker_.used_bytes();
    if (!walker_.is_resident(id_) && free < least_free_bytes_) {
      least_free_bytes_ = free;
      tightest_ = run.op;
    }
    if (run.repeated && writes(run.op)) {
      say(fmt::format("{} runs again after {}", op_text(run.op),
                      last_ == ir::kNone ? "the beginning" : op_text(last_)));
    }
    last_ = run.op;
  }

 private:
  struct Gap {
    ir::OpId from = ir::kNone, to = ir::kNone;
    std::int64_t ops = 0;
    double seconds = 0;
  };

  std::string op_text(ir::OpId op) const { return fmt::format("op {} {}", op, problem_.graph->op(op).name); }

  std::string what() const {
    const std::string name = problem_.storage_name(id_);
    return fmt::format("{}: {}, {}{}", name, ir::role_name(info_.role), format_bytes(info_.size_bytes),
                       info_.footprint_bytes > info_.size_bytes
                           ? fmt::format(" ({} in the pool)", format_bytes(info_.footprint_bytes))
                           : "");
  }

  std::string uses() const {
    std::string text;
    for (std::size_t i = 0; i < info_.accesses.size(); ++i) {
      if (i == kUsesShown) return text + fmt::format(" and {} more", info_.accesses.size() - i);
      const plan::Access& access = info_.accesses[i];
      text += fmt::format("{}{} ({}{}, {})", i == 0 ? "" : "; ", op_text(access.position),
                          access.reads ? "reads" : "",
                          access.writes ? access.reads ? " and writes" : "makes" : "",
                          ir::phase_name(problem_.graph->op(access.position).phase));
    }
    return text.empty() ? "none in this step" : text;
  }

  double seconds_between(ir::OpId after, ir::OpId before) const {
    double sum = 0;
    for (ir::OpId op = after + 1; op < before; ++op) sum += profile_.seconds(op);
    return sum;
  }

  Gap longest_gap() const {
    Gap longest;
    for (std::size_t i = 0; i + 1 < info_.accesses.size(); ++i) {
      const ir::OpId from = info_.accesses[i].position, to = info_.accesses[i + 1].position;
      const double seconds = seconds_between(from, to);
      if (to - from > 1 && seconds >= longest.seconds) longest = {from, to, to - from - 1, seconds};
    }
    return longest;
  }

  void say(const std::string& what) { events_ += (events_.empty() ? "" : "; ") + what; }

  std::string when() const { return last_ == ir::kNone ? "before the first op" : "after " + op_text(last_); }

  bool writes(ir::OpId op) const {
    for (const plan::Use& use : problem_.op(op).uses) {
      if (use.storage == id_ && use.writes) return true;
    }
    return false;
  }

  /// How long before its use a read that starts at this instruction is.
  std::string ahead(std::size_t at) const {
    std::int64_t ops = 0;
    double seconds = 0;
    for (; at < plan_.instructions.size(); ++at) {
      const plan::Instruction& in = plan_.instructions[at];
      if (in.action != plan::Action::run) continue;
      for (const plan::Use& use : problem_.op(in.id).uses) {
        if (use.storage == id_)
          return fmt::format(", {} ops and {} ahead of {}", ops, seconds_text(seconds), op_text(in.id));
      }
      ++ops;
      seconds += profile_.seconds(in.id, in.variant);
    }
    return ", for the next step";
  }

  std::string verdict() const {
    const Fate fate = fates(problem_, plan_)[static_cast<std::size_t>(id_)];
    std::string text = "policy " + plan_.policy + ": ";
    switch (fate) {
      case Fate::brief:
        return text + "it lives only briefly, " + (events_.empty() ? "within the step" : events_);
      case Fate::kept:
        return text + "kept" + (events_.empty() ? ", in memory all the time" : "; " + events_);
      case Fate::swapped:
        return text + "swapped; " + events_;
      case Fate::recomputed:
        return text + "computed again; " + events_;
    }
    return text;
  }

  void costs(const Gap& gap) {
    if (tightest_ != ir::kNone) {
      lines_.push_back(
          fmt::format("  to keep it: {} more all the time; while it is away the plan has {} to spare at the "
                      "tightest, at {}",
                      format_bytes(info_.footprint_bytes),
                      format_bytes(std::max<std::int64_t>(0, least_free_bytes_)), op_text(tightest_)));
    }
    const auto bytes = static_cast<double>(info_.size_bytes);
    if (!info_.swappable) {
      lines_.emplace_back("  to swap it: not possible, it is too small for the tier");
    } else {
      lines_.push_back(fmt::format(
          "  to swap it: {} to write, {} to read{}", seconds_text(bytes / profile_.tier.write_bandwidth),
          seconds_text(bytes / profile_.tier.read_bandwidth),
          gap.from == ir::kNone
              ? ""
              : ", hidden where the tier is free during the gap of " + seconds_text(gap.seconds)));
    }
    if (info_.carried) {
      lines_.emplace_back("  to compute it again: not possible, it is state");
    } else if (!info_.accesses.empty()) {
      const ir::OpId maker = info_.accesses.front().position;
      if (problem_.graph->op(maker).kind == ir::OpKind::input) {
        lines_.emplace_back("  to compute it again: not possible, the caller writes it");
      } else {
        lines_.push_back(fmt::format("  to compute it again: {} for {}, and what that needs must be there",
                                     seconds_text(profile_.seconds(maker)), op_text(maker)));
      }
    }
  }

  const plan::Problem& problem_;
  const plan::Plan& plan_;
  const plan::Profile& profile_;
  ir::StorageId id_;
  const plan::StorageInfo& info_;
  plan::Walker walker_;
  ir::OpId last_ = ir::kNone;
  std::vector<std::string> lines_;
  std::string events_;
  std::int64_t least_free_bytes_ = std::numeric_limits<std::int64_t>::max();
  ir::OpId tightest_ = ir::kNone;
};

}  // namespace

std::vector<std::string> explain(const plan::Problem& problem, const plan::Plan& plan,
                                 const plan::Profile& profile, const std::string& name) {
  std::vector<std::string> lines;
  for (const ir::StorageId storage : find(*problem.graph, name)) {
    for (std::string& line : Explanation(problem, plan, profile, storage).lines())
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace penstock::report
