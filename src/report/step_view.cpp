#include "report/step_view.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "plan/walker.h"

namespace penstock::report {
namespace {

/// Waits shorter than this are the call itself.
constexpr double kShortestStallSeconds = 5e-5;

Kind kind_of(ir::Phase phase) {
  switch (phase) {
    case ir::Phase::forward:
      return Kind::forward;
    case ir::Phase::backward:
      return Kind::backward;
    case ir::Phase::update:
      return Kind::update;
  }
  return Kind::forward;
}

void add_point(std::vector<plan::MemoryPoint>& points, double seconds, std::int64_t bytes) {
  if (!points.empty() && points.back().bytes == bytes) return;
  points.push_back({seconds, bytes});
}

/// Follows the plan's instructions along the times that the trace has for them.
class Viewer : public plan::PlanVisitor {
 public:
  /// `free_seconds`: until when the tier's lanes are taken by the steps before; brought up to date.
  Viewer(const plan::Problem& problem, const plan::Plan& plan, const run::Trace& trace,
         std::array<double, kLanes>& free_seconds)
      : problem_(problem),
        walker_(problem, plan),
        trace_(trace),
        free_seconds_(free_seconds),
        ahead_(problem.storages.size(), false) {}

  StepView view() {
    find_bounds();
    walker_.begin(*this);
    note_memory();
    walker_.step(*this);
    view_.memory.push_back({view_.end_seconds, used_bytes()});
    view_.prefetched.push_back({view_.end_seconds, ahead_bytes_});
    for (const Lane lane : {Lane::reads, Lane::writes}) add_transfers(lane);
    std::stable_sort(view_.events.begin(), view_.events.end(), [](const LaneEvent& a, const LaneEvent& b) {
      return a.lane != b.lane ? a.lane < b.lane : a.start_seconds < b.start_seconds;
    });
    add_in_memory();
    return std::move(view_);
  }

  void stands(const plan::Standing& standing) {
    if (standing.resident && standing.pending == plan::Transfer::read) set_ahead(standing.storage, true);
  }
  void got_memory(ir::StorageId storage, plan::Action by) {
    if (by == plan::Action::swap_in) set_ahead(storage, true);
    note_memory();
  }
  void lost_memory(ir::StorageId storage) {
    set_ahead(storage, false);
    note_memory();
  }
  void adopted(ir::StorageId /*to*/, ir::StorageId from) { set_ahead(from, false); }
  void waited(ir::StorageId storage, plan::Transfer /*direction*/) {
    const run::TraceEvent* event = next(plan::Action::wait, storage);
    if (event == nullptr) return;
    now_seconds_ = event->end_seconds;
    if (event->end_seconds - event->start_seconds < kShortestStallSeconds) return;
    view_.events.push_back({Lane::compute, Kind::stall, problem_.storage_name(storage), "",
                            event->start_seconds, event->end_seconds, problem_.storage(storage).size_bytes});
  }
  void begins(const plan::OpRun& run) {
    running_ = next(plan::Action::run, run.op);
    if (running_ == nullptr) return;
    for (const plan::Use& use : problem_.op(run.op).uses) set_ahead(use.storage, false);
    now_seconds_ = running_->start_seconds;
    note_memory();
  }
  void ends(const plan::OpRun& run) {
    if (running_ == nullptr) return;
    const ir::Op& op = problem_.graph->op(run.op);
    now_seconds_ = running_->end_seconds;
    note_memory();
    double& started = started_[static_cast<std::size_t>(run.op)];
    if (started < 0) started = running_->start_seconds;
    view_.events.push_back({Lane::compute, running_->repeated ? Kind::recompute : kind_of(op.phase), op.name,
                            ir::op_name(op.kind), running_->start_seconds, running_->end_seconds, 0});
    note_exchange(op, *running_);
  }

 private:
  static bool is_clock(const run::TraceEvent& event) {
    return event.action == plan::Action::run || event.action == plan::Action::wait;
  }

  void find_bounds() {
    view_.start_seconds = std::numeric_limits<double>::max();
    for (const run::TraceEvent& event : trace_.events) {
      if (!is_clock(event)) continue;
      view_.start_seconds = std::min(view_.start_seconds, event.start_seconds);
      view_.end_seconds = std::max(view_.end_seconds, event.end_seconds);
    }
    view_.start_seconds = std::min(view_.start_seconds, view_.end_seconds);
    now_seconds_ = view_.start_seconds;
    started_.assign(problem_.graph->ops.size(), -1);
  }

  /// The trace's next event of the compute lane if it is this one.
  const run::TraceEvent* next(plan::Action action, int id) {
    std::size_t at = cursor_;
    while (at < trace_.events.size() && !is_clock(trace_.events[at])) ++at;
    if (at == trace_.events.size()) return nullptr;
    const run::TraceEvent& event = trace_.events[at];
    if (event.action != action || event.id != id) return nullptr;
    cursor_ = at + 1;
    return &event;
  }

  /// What is between ranks is on its way from the op that starts it to the one that waits for it.
  void note_exchange(const ir::Op& op, const run::TraceEvent& event) {
    if (op.kind == ir::OpKind::reduce_start || op.kind == ir::OpKind::gather_start) {
      sent_[op.outputs[0]] = event.end_seconds;
    } else if (op.kind == ir::OpKind::reduce_wait || op.kind == ir::OpKind::gather_wait) {
      const auto sent = sent_.find(op.inputs[0]);
      if (sent == sent_.end()) return;
      const ir::Tensor& bucket = problem_.graph->tensor(op.inputs[0]);
      double& free_seconds = free_seconds_[static_cast<std::size_t>(Lane::network)];
      const double start = std::min(std::max(sent->second, free_seconds), event.end_seconds);
      view_.events.push_back(
          {Lane::network, Kind::transfer, bucket.name, "", start, event.end_seconds, bucket.size_bytes()});
      free_seconds = event.end_seconds;
    }
  }

  std::int64_t used_bytes() const { return problem_.fixed_bytes + walker_.used_bytes(); }

  void set_ahead(ir::StorageId storage, bool ahead) {
    const auto i = static_cast<std::size_t>(storage);
    if (ahead_[i] == ahead) return;
    ahead_[i] = ahead;
    ahead_bytes_ += (ahead ? 1 : -1) * problem_.storage(storage).footprint_bytes;
  }

  void note_memory() {
    add_point(view_.memory, now_seconds_, used_bytes());
    add_point(view_.prefetched, now_seconds_, ahead_bytes_);
  }

  void add_transfers(Lane lane) {
    const plan::Action action = lane == Lane::reads ? plan::Action::swap_in : plan::Action::swap_out;
    std::vector<run::TraceEvent> moved;
    for (const run::TraceEvent& event : trace_.events) {
      if (event.action == action) moved.push_back(event);
    }
    std::stable_sort(moved.begin(), moved.end(), [](const run::TraceEvent& a, const run::TraceEvent& b) {
      return a.end_seconds < b.end_seconds;
    });
    double& free_seconds = free_seconds_[static_cast<std::size_t>(lane)];
    for (std::size_t first = 0; first < moved.size();) {
      // Several that were found complete at one moment shared the time until then as their bytes tell.
      std::size_t last = first;
      double start = moved[first].start_seconds, bytes = 0;
      for (; last < moved.size() && moved[last].end_seconds <= moved[first].end_seconds; ++last) {
        start = std::min(start, moved[last].start_seconds);
        bytes += static_cast<double>(problem_.storage(moved[last].id).size_bytes);
      }
      const double end = moved[first].end_seconds;
      start = std::min(std::max(start, free_seconds), end);
      const double seconds_per_byte = bytes > 0 ? (end - start) / bytes : 0;
      for (; first < last; ++first) {
        const std::int64_t size_bytes = problem_.storage(moved[first].id).size_bytes;
        const double until = first + 1 == last
                                 ? end
                                 : std::min(end, start + seconds_per_byte * static_cast<double>(size_bytes));
        view_.events.push_back(
            {lane, Kind::transfer, problem_.storage_name(moved[first].id), "", start, until, size_bytes});
        start = until;
      }
      free_seconds = end;
    }
  }

  /// From each storage's first use to its last, at the times when the ops first ran; state always.
  void add_in_memory() {
    std::vector<plan::MemoryPoint> changes;
    std::int64_t bytes = problem_.fixed_bytes;
    for (const plan::StorageInfo& storage : problem_.storages) {
      if (storage.carried) {
        bytes += storage.footprint_bytes;
      } else if (!storage.accesses.empty()) {
        changes.push_back(
            {started_[static_cast<std::size_t>(storage.accesses.front().position)], storage.footprint_bytes});
        const auto after = static_cast<std::size_t>(storage.accesses.back().position) + 1;
        const double end = after < started_.size() ? started_[after] : view_.end_seconds;
        changes.push_back({end, -storage.footprint_bytes});
      }
    }
    for (std::size_t op = 0; op < problem_.ops.size(); ++op) {
      const std::int64_t scratch_bytes = problem_.ops[op].scratch_bytes[0];
      if (scratch_bytes == 0) continue;
      const double end = op + 1 < started_.size() ? started_[op + 1] : view_.end_seconds;
      changes.push_back({started_[op], scratch_bytes});
      changes.push_back({end, -scratch_bytes});
    }
    // What is given back at a moment goes before what is taken then.
    std::stable_sort(changes.begin(), changes.end(),
                     [](const plan::MemoryPoint& a, const plan::MemoryPoint& b) {
                       return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
                     });
    view_.in_memory.push_back({view_.start_seconds, bytes});
    for (const plan::MemoryPoint& change : changes) {
      bytes += change.bytes;
      add_point(view_.in_memory, std::max(change.seconds, view_.start_seconds), bytes);
    }
    view_.in_memory.push_back({view_.end_seconds, bytes});
  }

  const plan::Problem& problem_;
  plan::Walker walker_;
  const run::Trace& trace_;
  std::array<double, kLanes>& free_seconds_;
  StepView view_;
  std::size_t cursor_ = 0;
  const run::TraceEvent* running_ = nullptr;  ///< the op that runs; null: the trace does not have it
  double now_seconds_ = 0;
  std::int64_t ahead_bytes_ = 0;
  std::vector<bool> ahead_;
  std::vector<double> started_;
  std::map<ir::TensorId, double> sent_;  ///< since when a bucket is on its way
};

}  // namespace

const char* lane_name(Lane lane) {
  constexpr const char* kNames[] = {"compute", "reads", "writes", "network"};
  return kNames[static_cast<int>(lane)];
}

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"forward", "backward", "update", "recompute", "stall", "transfer"};
  return kNames[static_cast<int>(kind)];
}

std::vector<StepView> view_steps(const plan::Problem& problem, const plan::Plan& plan,
                                 std::span<const run::Trace> traces, std::int64_t first_step) {
  std::array<double, kLanes> free_seconds;
  free_seconds.fill(std::numeric_limits<double>::lowest());
  std::vector<StepView> views;
  for (const run::Trace& trace : traces) {
    views.push_back(Viewer(problem, plan, trace, free_seconds).view());
    views.back().step = first_step++;
  }
  return views;
}

}  // namespace penstock::report
