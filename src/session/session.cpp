#include "penstock/session.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/openmp.h"
#include "base/text_file.h"
#include "dist/measure.h"
#include "fit/fit_json.h"
#include "memory/process.h"
#include "models/network_graph.h"
#include "plan/budget_error.h"
#include "plan/estimate.h"
#include "report/explain.h"
#include "report/forecast_text.h"
#include "session/checkpoint.h"
#include "session/describe.h"
#include "session/fitting.h"
#include "session/optimizer.h"
#include "session/pace.h"
#include "session/rank_exchange.h"
#include "session/recorder.h"
#include "session/runner.h"
#include "session/slow_watch.h"
#include "session/state_io.h"
#include "session/step_io.h"
#include "tier/swap_dir.h"

namespace penstock {

using namespace session;

class Session::Impl {
 public:
  Impl(Network network, const Optimizer& optimizer, const SessionOptions& options)
      : network_(std::move(network)),
        optimizer_(optimizer),
        options_(options),
        ranks_(options.ranks.ranks ? options.ranks.ranks : std::make_shared<Ranks>(dist::make_alone())),
        exchanger_(ranks_->communicator()),
        learning_rate_(base_learning_rate(optimizer)),
        paged_memory_(paged_memory(options.memory)) {
    resident_before_bytes_ = process_memory().resident_bytes;
    ranks_->together([&] { check_options(); });
    threads_ = options_.threads > 0 ? options_.threads : threads_of_rank(*ranks_);
    const ThreadScope scope(threads_);
    if (options_.training) link_ = dist::measure_network(ranks_->communicator());
    ranks_->together([&] { build(); });
    if (options_.training) check_same_exchanges(*ranks_, program_.training->graph);
    ranks_->together([&] {
      prepare(link_profile(link_, ranks_->size()));
      const double begin = clock_seconds();
      state_->initialise(options_.seed);
      std::int64_t elements = 0;
      for (const StateEntry& entry : state_->entries()) elements += entry.shape.elements();
      phase("fill", clock_seconds() - begin,
            fmt::format("{} of state in {} tensors", format_bytes(4 * elements), state_->entries().size()));
    });
  }

  StepResult step(const Inputs& inputs) {
    require_training();
    const Call call(*this);
    const lower::Executable& step = *program_.training;
    StepIo io(step.graph, inputs, StepIo::Missing::refuse);
    StepResult result;
    kernels::StepContext context = context_for(io, result);
    result.stats = call.run([&] { return runner_->train_step(context); });
    ++steps_done_;
    statistics_shared_ = false;
    result.loss = ranks_->mean(io.loss());
    result.gradient_norm = io.gradient_norm();
    after_step(result.stats);
    return result;
  }

  StepResult run(const Inputs& inputs) {
    if (!program_.evaluation) throw UserError("this session was made without room for run(); set evaluation");
    const Call call(*this);
    const lower::Executable& step = *program_.evaluation;
    if (!statistics_shared_) {
      call.run([&] { take_statistics_of_rank_0(*ranks_, *state_); });
      statistics_shared_ = true;
    }
    StepIo io(step.graph, inputs, StepIo::Missing::leave_out);
    StepResult result;
    kernels::StepContext context = context_for(io, result);
    result.stats = call.run([&] { return runner_->evaluate_step(context); });
    result.loss = io.loss();
    return result;
  }

  std::vector<StateInfo> state() const {
    std::vector<StateInfo> infos;
    for (const StateEntry& entry : state_->entries()) {
      const StateKind kind = entry.role == ir::Role::parameter ? StateKind::parameter
                             : entry.role == ir::Role::buffer  ? StateKind::statistic
                                                               : StateKind::optimizer;
      infos.push_back({entry.name, entry.shape.dims(), kind});
    }
    return infos;
  }

  void read(const std::string& name, const std::function<void(std::span<const float>)>& use) {
    const Call call(*this);
    const StateEntry& entry = find(name);
    const auto count = static_cast<std::size_t>(entry.shape.elements());
    call.run([&] { state_->read(entry, [&](const float* values) { use({values, count}); }); });
  }

  void write(const std::string& name, std::span<const float> values) {
    const Call call(*this);
    const StateEntry& entry = find(name);
    if (static_cast<std::int64_t>(values.size()) != entry.shape.elements()) {
      throw UserError(fmt::format("'{}' has the shape {}: {} values, not {}", name, entry.shape.to_string(),
                                  entry.shape.elements(), values.size()));
    }
    call.run([&] { state_->write(entry, [&](float* to) { std::copy(values.begin(), values.end(), to); }); });
  }

  void fill(const std::string& name, const std::function<void(std::span<float>)>& writer) {
    const Call call(*this);
    const StateEntry& entry = find(name);
    const auto count = static_cast<std::size_t>(entry.shape.elements());
    call.run([&] { state_->write(entry, [&](float* to) { writer({to, count}); }); });
  }

  std::string state_sha256() {
    const Call call(*this);
    return call.run([&] { return state_->sha256(); });
  }

  void save(const std::string& path) {
    const Call call(*this);
    if (ranks_->rank() == 0) save_weights(path, *state_);
  }

  void load(const std::string& path) {
    const Call call(*this);
    load_weights(path, *state_);
  }

  void save_checkpoint(const std::string& dir, const std::map<std::string, std::string>& info, int keep) {
    const Call call(*this);
    if (ranks_->rank() != 0) return state_->lend_shards();
    CheckpointHeader header;
    header.step = steps_done_;
    header.seed = options_.seed;
    header.facts = info;
    write_checkpoint(dir, header, *state_, keep);
  }

  void load_checkpoint(const std::string& dir, bool with_optimizer) {
    const Call call(*this);
    const CheckpointHeader info = read_checkpoint(dir, *state_, with_optimizer);
    if (!with_optimizer) return;
    steps_done_ = info.step;
    options_.seed = info.seed;
  }

  const Forecast& plan() const { return forecast_; }

  /// The plan in words is made where the plan is, because that takes memory, which is counted there.
  Forecast describe_fit(const fit::Fit& fit) const {
    Forecast forecast = describe(fit, options_.memory.scope, profile_source_);
    forecast.plan_seconds = plan_seconds_;
    if (ranks_->size() > 1) {
      forecast.link_bandwidth = link_.bandwidth;
      forecast.link_latency_seconds = link_.latency_seconds;
    }
    return forecast;
  }

  std::string plan_text() const { return report::forecast_text(plan(), network_.name(), batch(), tokens_); }

  void save_plan(const std::string& path) const {
    require_training();
    write_file(path, fit::fit_to_json(program_.steps(), whole_fit(), network_.name(), batch()));
  }

  std::vector<std::string> explain(const std::string& name) const {
    require_training();
    const fit::Fit& fit = runner_->fit();
    const plan::Problem problem = fit::training_problem(program_.steps(), fit);
    const plan::Profile profile = fit.profile ? *fit.profile : plan::estimate_profile(problem);
    return report::explain(problem, fit.training->plan, profile, name);
  }

  void settle() {
    const Call call(*this);
    call.run([&] { runner_->executor().quiesce(); });
  }

  void finish(const std::string& trace_file, const std::string& report_file, const RunStory& story) {
    RunFacts facts = run_facts();
    keep_seen();
    fit::Fit fit = runner_->fit();
    state_.reset();
    runner_.reset();
    failed_ = "the session is finished";
    malloc_trim(0);
    fit::restore_problems(program_.steps(), fit);
    facts.peak_rss_bytes =
        story.peak_rss_bytes > 0 ? story.peak_rss_bytes : process_memory().peak_resident_bytes;
    recorder_.write(fit, facts, story, trace_file, report_file);
  }

  void write_report(const std::string& trace_file, const std::string& report_file, const RunStory& story) {
    const Call call(*this);
    const RunFacts facts = run_facts();
    recorder_.write(whole_fit(), facts, story, trace_file, report_file);
    malloc_trim(0);
  }

  ~Impl() {
    if (runner_) keep_seen();
  }

  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate) {
    if (!(rate >= 0) || !std::isfinite(rate))
      throw UserError(fmt::format("a learning rate of {} is none", rate));
    learning_rate_ = rate;
  }
  std::int64_t steps_done() const { return steps_done_; }
  void set_steps_done(std::int64_t steps) { steps_done_ = steps; }
  std::string why_slower() const { return slow_watch_ ? slow_watch_->whole_run() : ""; }
  const Runner& runner() const { return *runner_; }
  std::int64_t replans() const { return pace_ ? pace_->replans() : 0; }
  int threads() const { return threads_; }
  const Network& network() const { return network_; }

 private:
  /// One call at a time: whoever comes from another thread meanwhile, or after a failure, is told so.
  class Call {
   public:
    explicit Call(Impl& impl) : impl_(impl), threads_(impl.threads_) {
      if (impl_.busy_.exchange(true))
        throw UserError("the session is in use: one thread at a time may call it, and none of its callbacks");
      if (!impl_.failed_.empty()) {
        impl_.busy_ = false;
        throw UserError("the session has ended (" + impl_.failed_ + "); make a new one");
      }
    }
    ~Call() { impl_.busy_ = false; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// What fails in here leaves memory and tier in between two steps.
    template <typename Body>
    std::invoke_result_t<Body> run(const Body& body) const {
      try {
        return body();
      } catch (const std::exception& error) {
        impl_.failed_ = error.what();
        throw;
      }
    }

   private:
    Impl& impl_;
    ThreadScope threads_;
  };

  /// The fit in use, with all of its problems.
  fit::Fit whole_fit() const {
    fit::Fit fit = runner_->fit();
    fit::restore_problems(program_.steps(), fit);
    return fit;
  }

  /// What a report says of the run so far.
  RunFacts run_facts() const {
    if (!options_.record || !program_.training) throw UserError("this session did not record its steps");
    RunFacts facts;
    facts.plan = plan();
    facts.tier = runner_->tier_description();
    facts.threads = threads_;
    facts.pool_peak_bytes = runner_->pool().peak_bytes();
    facts.peak_by_tag = runner_->budget().peak_breakdown();
    facts.peak_rss_bytes = process_memory().peak_resident_bytes;
    return facts;
  }

  void require_training() const {
    if (!program_.training) throw UserError("this session was made without training");
  }

  void check_options() const {
    check(optimizer_);
    if (!options_.training && !options_.evaluation)
      throw UserError("a session needs training, evaluation or both");
    if (options_.accumulate < 1)
      throw UserError(fmt::format("{} micro-batches a step are none; use 1 or more", options_.accumulate));
    if (optimizer_.moments == MomentType::bf16 && options_.ranks.shard_optimizer && ranks_->size() > 1)
      throw UserError("moments in bf16 and an optimizer that is sharded over ranks exclude each other");
    if (!options_.memory.swap_dir.empty()) check_swap_dir(options_.memory.swap_dir, 0);
    if (options_.ranks.shard_optimizer && ranks_->size() == 1)
      note("sharding the optimizer has nobody to share with: there is one rank");
  }

  void build() {
    const double begin = clock_seconds();
    ProgramRequest request;
    if (options_.training) request.optimizer = &optimizer_;
    request.evaluation = options_.evaluation;
    request.variants = options_.memory.dynamic_kernels;
    request.accumulate = options_.accumulate;
    request.slice_samples = slice_samples(network_, options_.memory);
    request.bands = options_.memory.bands;
    request.repeat_cheap = options_.memory.repeat_cheap;
    request.exchange = exchange_options(options_.ranks, *ranks_, options_.memory.budget_bytes > 0);
    program_ = make_program(network_, request);
    const ir::Graph& graph = program_.state_graph();
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto port = static_cast<std::int32_t>(i);
      if (graph.ports_of(port).empty()) continue;
      const ir::Shape shape = graph.input_shape(port);
      if (shape.rank() > 0) batch_ = shape[0];
      if (shape.rank() == 2 && graph.input_dtype(port) == ir::DType::s32) tokens_ = shape[1];
      break;
    }
    malloc_trim(0);
    // Before any rank of this machine takes its pool.
    available_bytes_ = available_memory_bytes() / ranks_->communicator().local_size();
    phase("build", clock_seconds() - begin,
          fmt::format("{} ops, {} storages, process {}", program_.state_graph().ops.size(),
                      program_.state_graph().storages, format_bytes(process_memory().resident_bytes)));
  }

  void prepare(const plan::LinkProfile& link) {
    fitting_.emplace(program_, options_, threads_, resident_before_bytes_, available_bytes_,
                     ranks_->communicator().growth_bytes(), link, ranks_->communicator().local_size(),
                     paged_memory_.works());
    fit::Fit fit = fit_or_refuse();
    profile_source_ = fitting_->profile_source();
    plan_seconds_ = fitting_->plan_seconds();
    if (options_.memory.budget_bytes == 0 && options_.memory.plan_file.empty())
      note(fmt::format("memory: {} (what is free, less a margin)", format_bytes(fit.division.budget_bytes)));
    phase("plan", plan_seconds_,
          fmt::format("policy {}, pool {} and {} beside it, of {}; {} to run again each step",
                      plan::policy_name(fit.policy), format_bytes(fit.pool_bytes()),
                      format_bytes(fit.division.beside_bytes()), format_bytes(fit.division.budget_bytes),
                      fit.training ? fit.training->plan.summary.recomputed : 0));
    forecast_ = describe_fit(fit);
    malloc_trim(0);
    may_replan_ = fit.division.beside.contains("planner");
    if (const std::string line = missing_counts(); !line.empty()) note(line);
    TierOptions tier = tier_options(options_.memory);
    tier.ram_available_bytes =
        std::max<std::int64_t>(1, available_bytes_ - fit.pool_bytes() - fit.division.beside_bytes());
    runner_ = std::make_unique<Runner>(program_, std::move(fit), tier);
    state_ = std::make_unique<StateIo>(program_, runner_->executor(), &ranks_->communicator());
    for (const std::string& line : runner_->notes()) note(line);
    const fit::Fit& in_use = runner_->fit();
    if (in_use.policy != Policy::keep) {
      note(fmt::format("{} batch {} needs {} in memory; training within {} with policy {}, swapping to {}",
                       network_.name(), batch(), format_bytes(in_use.in_memory_bytes),
                       format_bytes(in_use.division.budget_bytes), plan::policy_name(in_use.policy),
                       runner_->tier_description()));
    }
    if (!program_.training) return;
    events_.looks_at_transfers = options_.record;
    events_.only_ops = !options_.record;
    if (options_.record) {
      events_.events.reserve(in_use.training->plan.instructions.size());
    } else {
      events_.op_times.reserve(static_cast<std::size_t>(in_use.training->plan.summary.runs));
    }
    runner_->set_trace(&events_);
    pace_.emplace(program_.steps());
    slow_watch_.emplace(in_use, threads_);
  }

  fit::Fit fit_or_refuse() {
    try {
      return fitting_->fit();
    } catch (const plan::BudgetError& error) {
      BudgetFacts refusal;
      refusal.network = network_.name();
      refusal.policy = error.policy();
      refusal.batch = batch();
      refusal.training = options_.training;
      refusal.budget_bytes = fitting_->budget_bytes();
      refusal.needed_bytes = error.needed_bytes();
      refusal.swap_space_bytes = fitting_->swap_space_bytes();
      refusal.needed_swap_bytes = error.needed_tier_bytes();
      refusal.advised_bytes = round_up(error.needed_bytes() + kUnsteadyBytes + 1, kMiB);
      // Where space on the tier is scarce, computing again may do with less, which the error does not know.
      if (fitting_->may_compute_again_for_space())
        refusal.advised_bytes = std::min(refusal.advised_bytes, fitting_->smallest_budget());
      throw BudgetTooSmall(refusal);
    }
  }

  kernels::StepContext context_for(StepIo& io, StepResult& result) {
    kernels::StepContext context;
    context.seed = options_.seed;
    context.step = static_cast<std::uint64_t>(steps_done_);
    context.learning_rate = learning_rate_;
    context.first_sample = ranks_->rank() * batch();
    context.exchanger = &exchanger_;
    context.feed = [&io](int input, void* to) { io.feed(input, to); };
    context.take = [&io, &result](int output, const void* from) { io.take(output, from, result.outputs); };
    return context;
  }

  void after_step(const StepStats& stats) {
    if (options_.record) recorder_.after_step(steps_done_, events_, runner_->fit().training->plan);
    if (const auto why = slow_watch_->after_step(stats, runner_->tier_stats())) note(*why);
    std::optional<PaceChange> change =
        pace_->after_step(runner_->fit(), stats, events_, runner_->tier_stats(), may_replan_);
    events_.events.clear();
    events_.op_times.clear();
    if (!change) return;
    if (change->replanned) note(change->line);
    fit::restore_problems(program_.steps(), change->fit);
    forecast_ = describe_fit(change->fit);
    runner_->replace(std::move(change->fit));
  }

  /// Keeps what was seen for the next run. All in memory, nothing was measured; but what is known from
  /// earlier can be bettered.
  void keep_seen() noexcept {
    if (!pace_ || fitting_->profiles() == nullptr) return;
    try {
      std::optional<plan::Profile> before = runner_->fit().profile;
      if (!before) before = fitting_->profiles()->find();
      if (!before) return;
      if (const auto seen = pace_->seen_profile(runner_->fit(), *before, runner_->tier_stats()))
        fitting_->profiles()->put(*seen);
    } catch (const std::exception&) {
      // What is not kept is measured again.
    }
  }

  const StateEntry& find(const std::string& name) const {
    for (const StateEntry& entry : state_->entries()) {
      if (entry.name == name) return entry;
    }
    throw UserError(
        fmt::format("'{}' is no tensor of the state; state() lists {}", name, state_->entries().size()));
  }

  std::int64_t batch() const { return batch_; }

  void note(const std::string& line) const {
    if (options_.on_note && ranks_->rank() == 0) options_.on_note(line);
  }
  void phase(const char* name, double seconds, const std::string& detail) const {
    if (options_.on_phase && ranks_->rank() == 0) options_.on_phase({name, seconds, detail});
  }

  Network network_;
  Optimizer optimizer_;
  SessionOptions options_;
  std::shared_ptr<Ranks> ranks_;
  RankExchanger exchanger_;
  double learning_rate_;
  dist::NetworkSpeed link_;
  int threads_ = 1;
  std::int64_t batch_ = 1;   ///< samples of this rank: the first extent of the first input
  std::int64_t tokens_ = 0;  ///< of a sample, where the first input is text
  std::int64_t resident_before_bytes_ = 0, available_bytes_ = 0;
  PagedMemory paged_memory_;  ///< for program and plan
  Program program_;
  std::optional<Fitting> fitting_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<StateIo> state_;
  std::optional<Pace> pace_;
  std::optional<SlowWatch> slow_watch_;
  run::Trace events_;
  Recorder recorder_;
  Forecast forecast_;
  std::int64_t steps_done_ = 0;
  bool may_replan_ = false;
  bool statistics_shared_ = true;  ///< no step since all ranks took those of rank 0
  double plan_seconds_ = 0;
  std::string profile_source_;
  std::atomic<bool> busy_ = false;
  std::string failed_;  ///< why nothing can be done any more
};

Session::Session(Network network, const Optimizer& optimizer, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(network), optimizer, options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

StepResult Session::step(const Inputs& inputs) {
  return impl_->step(inputs);
}
StepResult Session::run(const Inputs& inputs) {
  return impl_->run(inputs);
}
double Session::learning_rate() const {
  return impl_->learning_rate();
}
void Session::set_learning_rate(double learning_rate) {
  impl_->set_learning_rate(learning_rate);
}
std::int64_t Session::steps_done() const {
  return impl_->steps_done();
}
void Session::set_steps_done(std::int64_t steps) {
  impl_->set_steps_done(steps);
}
std::vector<StateInfo> Session::state() const {
  return impl_->state();
}
void Session::read(const std::string& name, const std::function<void(std::span<const float>)>& use) {
  impl_->read(name, use);
}
void Session::write(const std::string& name, std::span<const float> values) {
  impl_->write(name, values);
}
void Session::fill(const std::string& name, const std::function<void(std::span<float>)>& writer) {
  impl_->fill(name, writer);
}
std::string Session::state_sha256() {
  return impl_->state_sha256();
}
void Session::save(const std::string& path) {
  impl_->save(path);
}
void Session::load(const std::string& path) {
  impl_->load(path);
}
void Session::save_checkpoint(const std::string& dir, const std::map<std::string, std::string>& info,
                              int keep) {
  impl_->save_checkpoint(dir, info, keep);
}
void Session::load_checkpoint(const std::string& dir, bool with_optimizer) {
  impl_->load_checkpoint(dir, with_optimizer);
}
Forecast Session::plan() const {
  return impl_->plan();
}
std::string Session::plan_text() const {
  return impl_->plan_text();
}
void Session::save_plan(const std::string& path) const {
  impl_->save_plan(path);
}
std::vector<std::string> Session::explain(const std::string& name) const {
  return impl_->explain(name);
}
void Session::settle() {
  impl_->settle();
}
std::string Session::why_slower() const {
  return impl_->why_slower();
}
std::map<std::string, std::int64_t> Session::peak_bytes_by_tag() const {
  return impl_->runner().budget().peak_breakdown();
}
std::int64_t Session::pool_peak_bytes() const {
  return impl_->runner().pool().peak_bytes();
}
std::int64_t Session::lost_bytes() const {
  return impl_->runner().pool().peak_lost_bytes();
}
std::int64_t Session::replans() const {
  return impl_->replans();
}
std::string Session::tier_description() const {
  return impl_->runner().tier_description();
}
int Session::threads() const {
  return impl_->threads();
}
const Network& Session::network() const {
  return impl_->network();
}
void Session::finish(const std::string& trace_file, const std::string& report_file, const RunStory& story) {
  impl_->finish(trace_file, report_file, story);
}
void Session::write_report(const std::string& trace_file, const std::string& report_file,
                           const RunStory& story) {
  impl_->write_report(trace_file, report_file, story);
}

std::string forecast_text(const Forecast& forecast, const std::string& network, std::int64_t batch,
                          std::int64_t tokens) {
  return report::forecast_text(forecast, network, batch, tokens);
}
std::string forecast_text(const ForecastTable& table, std::int64_t batch, std::int64_t tokens) {
  return report::forecast_table(table, batch, tokens);
}

const char* version() {
  return "0.1.0";
}

}  // namespace penstock
