#include "plan/simulator.h"

#include <algorithm>
#include <utility>

#include "plan/link_lane.h"
#include "plan/tier_lanes.h"
#include "plan/walker.h"

namespace penstock::plan {
namespace {

constexpr int kWarmUpSteps = 2;

class Simulator : public PlanVisitor {
 public:
  Simulator(const Problem& problem, const Plan& plan, const Profile& profile, bool with_timeline)
      : problem_(problem),
        profile_(profile),
        with_timeline_(with_timeline),
        walker_(problem, plan),
        lanes_(profile.tier, problem.storages.size()),
        link_(*problem.graph, profile.link) {}

  Simulation simulate() {
    const bool with_timeline = std::exchange(with_timeline_, false);
    walker_.begin(*this);
    for (int i = 0; i < kWarmUpSteps; ++i) step();
    with_timeline_ = with_timeline;
    step();
    return std::move(result_);
  }

  void stands(const Standing& standing) {
    if (standing.pending != Transfer::none) start(standing.storage, standing.pending);
  }

  void got_memory(ir::StorageId s, Action by) {
    (void)by;
    const std::int64_t bytes = problem_.storage(s).footprint_bytes;
    if (bytes > 0) map(bytes);
    note_memory();
  }

  void lost_memory(ir::StorageId) { note_memory(); }

  void adopted(ir::StorageId to, ir::StorageId) { map(problem_.storage(to).footprint_bytes); }

  void started(ir::StorageId s, Transfer direction) {
    pay_for_transfer(s);
    start(s, direction);
  }

  void waited(ir::StorageId s, Transfer direction) {
    const double done_seconds = lanes_.wait(s, now_seconds_);
    if (done_seconds > now_seconds_) note(Action::wait, s, false, now_seconds_, done_seconds);
    const TierLanes::Interval moved = lanes_.interval(s);
    note(direction == Transfer::read ? Action::swap_in : Action::swap_out, s, false, moved.start_seconds,
         moved.end_seconds);
    now_seconds_ = std::max(now_seconds_, done_seconds);
  }

  void begins(const OpRun& run) {
    const double seconds = profile_.seconds(run.op, run.variant);
    if (run.scratch_bytes > 0) {
      map(run.scratch_bytes);
      note_memory();
    }
    wait_for_link(run.op);
    note(Action::run, run.op, run.repeated, now_seconds_, now_seconds_ + seconds);
    now_seconds_ += seconds;
    start_on_link(run.op);
    result_.compute_seconds += seconds;
    if (run.repeated) result_.recompute_seconds += seconds;
  }

  void ends(const OpRun& run) {
    if (run.scratch_bytes > 0) note_memory();
  }

 private:
  void step() {
    result_ = {};
    begin_seconds_ = now_seconds_;
    const double read_seconds = lanes_.busy_seconds(false), write_seconds = lanes_.busy_seconds(true);
    note_memory();
    walker_.step(*this);
    result_.step_seconds = now_seconds_ - begin_seconds_;
    result_.stall_seconds =
        result_.step_seconds - result_.compute_seconds - result_.host_seconds - result_.slowed_seconds;
    result_.read_seconds = lanes_.busy_seconds(false) - read_seconds;
    result_.write_seconds = lanes_.busy_seconds(true) - write_seconds;
  }

  void wait_for_link(ir::OpId op) {
    const double ready_seconds = link_.ready_seconds(op);
    if (ready_seconds <= now_seconds_) return;
    const ir::StorageId bucket = problem_.graph->tensor(problem_.graph->op(op).inputs[0]).storage;
    note(Action::wait, bucket, false, now_seconds_, ready_seconds);
    result_.link_stall_seconds += ready_seconds - now_seconds_;
    now_seconds_ = ready_seconds;
  }

  void start_on_link(ir::OpId op) {
    const auto busy = link_.start(op, now_seconds_);
    if (!busy) return;
    result_.link_seconds += busy->end_seconds - busy->start_seconds;
    if (!with_timeline_) return;
    result_.link.push_back(
        {Action::run, op, false, busy->start_seconds - begin_seconds_, busy->end_seconds - begin_seconds_});
  }

  void start(ir::StorageId s, Transfer direction) {
    lanes_.start(s, direction == Transfer::write, problem_.storage(s).size_bytes, now_seconds_);
  }

  void map(std::int64_t bytes) {
    if (!problem_.remaps) return;
    const HostProfile& host = profile_.host;
    spend(host.moves_each * host.mapping_seconds +
          host.moved_share * static_cast<double>(bytes) * host.mapping_seconds_per_byte);
  }

  /// What compute loses while it is under way is taken off at once.
  void pay_for_transfer(ir::StorageId s) {
    const double slowed =
        static_cast<double>(problem_.storage(s).size_bytes) * profile_.host.transfer_seconds_per_byte;
    now_seconds_ += slowed;
    result_.slowed_seconds += slowed;
    spend(profile_.host.transfer_seconds);
  }

  void spend(double seconds) {
    now_seconds_ += seconds;
    result_.host_seconds += seconds;
  }

  void note_memory() {
    const std::int64_t bytes = walker_.used_bytes();
    result_.peak_bytes = std::max(result_.peak_bytes, bytes);
    if (with_timeline_) result_.memory.push_back({now_seconds_ - begin_seconds_, bytes});
  }

  void note(Action action, std::int32_t id, bool repeated, double start_seconds, double end_seconds) {
    if (!with_timeline_) return;
    result_.timeline.push_back(
        {action, id, repeated, start_seconds - begin_seconds_, end_seconds - begin_seconds_});
  }

  const Problem& problem_;
  const Profile& profile_;
  bool with_timeline_;
  Walker walker_;
  TierLanes lanes_;
  LinkLane link_;
  double now_seconds_ = 0;
  double begin_seconds_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Problem& problem, const Plan& plan, const Profile& profile, bool with_timeline) {
  return Simulator(problem, plan, profile, with_timeline).simulate();
}

}  // namespace penstock::plan
