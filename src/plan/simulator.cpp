#include "plan/simulator.h"

#include <algorithm>

#include "plan/link_lane.h"
#include "plan/tier_lanes.h"

namespace penstock::plan {
namespace {

constexpr int kWarmUpSteps = 2;

class Simulator {
 public:
  Simulator(const Problem& problem, const Plan& plan, const Profile& profile, bool with_timeline)
      : problem_(problem),
        plan_(plan),
        profile_(profile),
        with_timeline_(with_timeline),
        lanes_(profile.tier, problem.storages.size()),
        link_(*problem.graph, profile.link),
        pending_(problem.storages.size(), Transfer::none) {}

  Simulation simulate() {
    for (const Standing& standing : plan_.boundary) {
      if (standing.resident) used_bytes_ += problem_.storage(standing.storage).footprint_bytes;
      if (standing.pending != Transfer::none) start(standing.storage, standing.pending);
    }
    for (int i = 0; i < kWarmUpSteps; ++i) step();
    step();
    return std::move(result_);
  }

 private:
  void step() {
    result_ = {};
    ran_.assign(problem_.ops.size(), false);
    begin_seconds_ = now_seconds_;
    const double read_seconds = lanes_.busy_seconds(false), write_seconds = lanes_.busy_seconds(true);
    note_memory(used_bytes_);
    for (const Instruction& in : plan_.instructions) obey(in);
    result_.step_seconds = now_seconds_ - begin_seconds_;
    result_.stall_seconds =
        result_.step_seconds - result_.compute_seconds - result_.host_seconds - result_.slowed_seconds;
    result_.read_seconds = lanes_.busy_seconds(false) - read_seconds;
    result_.write_seconds = lanes_.busy_seconds(true) - write_seconds;
  }

  void obey(const Instruction& in) {
    switch (in.action) {
      case Action::run:
        return run(in);
      case Action::acquire:
        return take_memory(in.id);
      case Action::adopt:
        return map(problem_.storage(in.id).footprint_bytes);
      case Action::release:
        return take(-problem_.storage(in.id).footprint_bytes);
      case Action::swap_in:
        take_memory(in.id);
        pay_for_transfer(in.id);
        return start(in.id, Transfer::read);
      case Action::swap_out:
        pay_for_transfer(in.id);
        return start(in.id, Transfer::write);
      case Action::wait:
        return wait(in.id);
    }
  }

  void run(const Instruction& in) {
    const double seconds = profile_.seconds(in.id, in.variant);
    const std::int64_t scratch_bytes = problem_.op(in.id).scratch_bytes[static_cast<std::size_t>(in.variant)];
    const bool repeated = ran_[static_cast<std::size_t>(in.id)];
    ran_[static_cast<std::size_t>(in.id)] = true;
    if (scratch_bytes > 0) {
      map(scratch_bytes);
      take(scratch_bytes);
    }
    wait_for_link(in.id);
    note(Action::run, in.id, repeated, now_seconds_, now_seconds_ + seconds);
    now_seconds_ += seconds;
    start_on_link(in.id);
    if (scratch_bytes > 0) take(-scratch_bytes);
    result_.compute_seconds += seconds;
    if (repeated) result_.recompute_seconds += seconds;
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
    pending_[static_cast<std::size_t>(s)] = direction;
    lanes_.start(s, direction == Transfer::write, problem_.storage(s).size_bytes, now_seconds_);
  }

  void wait(ir::StorageId s) {
    Transfer& pending = pending_[static_cast<std::size_t>(s)];
    if (pending == Transfer::none) return;
    const double done_seconds = lanes_.wait(s, now_seconds_);
    if (done_seconds > now_seconds_) note(Action::wait, s, false, now_seconds_, done_seconds);
    const TierLanes::Interval moved = lanes_.interval(s);
    note(pending == Transfer::read ? Action::swap_in : Action::swap_out, s, false, moved.start_seconds,
         moved.end_seconds);
    now_seconds_ = std::max(now_seconds_, done_seconds);
    pending = Transfer::none;
  }

  void take_memory(ir::StorageId s) {
    const std::int64_t bytes = problem_.storage(s).footprint_bytes;
    if (bytes > 0) map(bytes);
    take(bytes);
  }

  void map(std::int64_t bytes) {
    if (!problem_.remaps) return;
    const HostProfile& host = profile_.host;
    spend(host.moves_each * host.mapping_seconds +
          static_cast<double>(bytes) * host.mapping_seconds_per_byte);
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

  void take(std::int64_t bytes) {
    used_bytes_ += bytes;
    note_memory(used_bytes_);
  }

  void note_memory(std::int64_t bytes) {
    result_.peak_bytes = std::max(result_.peak_bytes, bytes);
    if (with_timeline_) result_.memory.push_back({now_seconds_ - begin_seconds_, bytes});
  }

  void note(Action action, std::int32_t id, bool repeated, double start_seconds, double end_seconds) {
    if (!with_timeline_) return;
    result_.timeline.push_back(
        {action, id, repeated, start_seconds - begin_seconds_, end_seconds - begin_seconds_});
  }

  const Problem& problem_;
  const Plan& plan_;
  const Profile& profile_;
  bool with_timeline_;
  TierLanes lanes_;
  LinkLane link_;
  std::vector<Transfer> pending_;
  std::vector<bool> ran_;
  std::int64_t used_bytes_ = 0;
  double now_seconds_ = 0;
  double begin_seconds_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Problem& problem, const Plan& plan, const Profile& profile, bool with_timeline) {
  return Simulator(problem, plan, profile, with_timeline).simulate();
}

}  // namespace penstock::plan
