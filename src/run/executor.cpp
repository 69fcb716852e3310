#include "run/executor.h"

#include "base/clock.h"
#include "base/long_vector.h"
#include "run/op_launcher.h"
#include "run/residency.h"
#include "run/state_mover.h"

namespace penstock::run {

class Executor::Impl {
 public:
  Impl(Pool& pool, const fit::StorageMap& map, Tier* tier, const LongVector<std::int64_t>& homes)
      : residency_(pool, map, tier), state_(residency_, map.storages), launcher_(residency_) {
    residency_.set_homes(homes);
  }

  StateMover& state() { return state_; }
  void set_trace(Trace* trace) { trace_ = trace; }

  StepStats run(const lower::Executable& step, const plan::Plan& plan, const kernels::StepContext& context) {
    StepStats stats;
    const double begin = clock_seconds();
    if (trace_ != nullptr && trace_->origin_seconds < 0) trace_->origin_seconds = begin;
    residency_.set_homes(plan.homes);
    state_.settle(plan.boundary);
    residency_.begin_step(plan.offsets);
    const double start = clock_seconds();
    stats.settle_seconds = start - begin;
    residency_.count_into(&stats, trace_);
    ran_.assign(step.graph.ops.size(), false);
    for (const plan::Instruction& in : plan.instructions) obey(in, step, context, stats);
    residency_.end_step();
    residency_.count_into(nullptr, nullptr);
    stats.step_seconds = clock_seconds() - start;
    return stats;
  }

 private:
  void obey(const plan::Instruction& in, const lower::Executable& step, const kernels::StepContext& context,
            StepStats& stats) {
    switch (in.action) {
      case plan::Action::acquire:
        return residency_.acquire(in.id);
      case plan::Action::swap_out:
        return residency_.swap_out(in.id);
      case plan::Action::swap_in:
        return residency_.swap_in(in.id);
      case plan::Action::wait:
        return residency_.wait(in.id);
      case plan::Action::release:
        return residency_.release(in.id);
      case plan::Action::adopt:
        return residency_.adopt(in.id, in.from);
      case plan::Action::run:
        return run_op(in, step, context, stats);
    }
  }

  void run_op(const plan::Instruction& in, const lower::Executable& step, const kernels::StepContext& context,
              StepStats& stats) {
    launcher_.prepare(step, in.id, in.variant, context);
    const double start = clock_seconds();
    launcher_.launch();
    launcher_.wait();
    const double end = clock_seconds();
    launcher_.finish();
    const bool repeated = ran_[static_cast<std::size_t>(in.id)];
    ran_[static_cast<std::size_t>(in.id)] = true;
    const bool waits = ir::is_exchange_wait(step.graph.op(in.id).kind);
    (waits ? stats.exchange_seconds : stats.compute_seconds) += end - start;
    if (repeated) stats.recompute_seconds += end - start;
    if (trace_ != nullptr && trace_->only_ops) {
      trace_->op_times.push_back({in.id, repeated, static_cast<float>(end - start)});
    } else if (trace_ != nullptr) {
      const double origin = trace_->origin_seconds;
      trace_->events.push_back({plan::Action::run, in.id, repeated, start - origin, end - origin});
      if (trace_->looks_at_transfers) residency_.look_for_complete();
    }
    for (const ir::TensorId output : step.graph.op(in.id).outputs) {
      residency_.changed(step.graph.tensor(output).storage, output);
    }
  }

  Residency residency_;
  StateMover state_;
  OpLauncher launcher_;
  Trace* trace_ = nullptr;
  LongVector<bool> ran_;
};

Executor::Executor(Pool& pool, const fit::StorageMap& map, Tier* tier, const LongVector<std::int64_t>& homes)
    : impl_(std::make_unique<Impl>(pool, map, tier, homes)) {}
Executor::~Executor() = default;

void Executor::write_state(ir::StorageId storage, const std::function<void(void*)>& fill) {
  impl_->state().write(storage, fill);
}

void Executor::read_state(ir::StorageId storage, const std::function<void(const void*)>& use) {
  impl_->state().read(storage, use);
}

void Executor::borrow(ir::StorageId storage, const std::function<void(void*)>& use) {
  impl_->state().borrow(storage, use);
}

StepStats Executor::run(const lower::Executable& step, const plan::Plan& plan,
                        const kernels::StepContext& context) {
  return impl_->run(step, plan, context);
}

void Executor::quiesce() {
  impl_->state().wait_for_all();
}

void Executor::set_trace(Trace* trace) {
  impl_->set_trace(trace);
}

}  // namespace penstock::run
