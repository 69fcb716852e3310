#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/median.h"
#include "data/loader.h"
#include "memory/process.h"
#include "penstock/penstock.h"
#include "run/residency.h"
#include "train/budget_planner.h"
#include "train/checkpoint.h"
#include "train/engine.h"
#include "train/job.h"
#include "train/pace.h"
#include "train/planned.h"
#include "train/rank_exchange.h"
#include "train/recorder.h"
#include "train/slow_watch.h"
#include "train/state_io.h"

namespace penstock {
namespace training {
namespace {

/// What image networks have as their inputs: images, labels.
constexpr int kImagesInput = 0;

void feed_part(Loader& loader, int input, void* to) {
  if (input == kImagesInput) return loader.next_images(static_cast<float*>(to));
  loader.next_labels(static_cast<std::int32_t*>(to));
}

/// One run of `train` or `evaluate`, from the options to the result.
class Run {
 public:
  Run(const Network& network, const Options& options, Purpose purpose)
      : job_(network, options, purpose),
        planner_(job_),
        exchanger_(job_.ranks->communicator()),
        recorder_(options, job_.ranks->rank() == 0) {}

  Result go() {
    const double begin = run::clock_seconds();
    job_.ranks->together([&] {
      job_.set_up();
      recorder_.check();
    });
    if (job_.training) job_.speed = dist::measure_network(job_.ranks->communicator());
    job_.ranks->together([&] { job_.build(); });
    if (job_.training) check_same_exchanges(*job_.ranks, job_.program.training->graph);
    job_.ranks->together([&] {
      prepare();
      fill_state();
    });
    result_.startup_seconds = run::clock_seconds() - begin;
    job_.ranks->side_by_side(
        [&] {
          if (job_.training) train_steps();
          if (job_.evaluating) evaluate_split();
          finish();
          record();
        },
        job_.options.on_rank_failure);
    return std::move(result_);
  }

 private:
  void prepare() {
    engine_ = std::make_unique<Engine>(job_.program, job_.options, planner_.plan());
    state_ = std::make_unique<StateIo>(job_.program, engine_->executor(), &job_.ranks->communicator());
    for (const std::string& line : engine_->notes()) job_.note(line);
    describe();
  }

  void describe() {
    const MemoryPlan& plan = engine_->memory_plan();
    result_.policy = plan.policy;
    result_.tier = engine_->tier_description();
    result_.threads = job_.threads;
    result_.profile_source = planner_.profile_source_name();
    result_.pool = plan.packed ? "packed" : "virtual";
    result_.budget_bytes = plan.budget_bytes;
    result_.pool_bytes = plan.capacity_bytes;
    result_.overhead_bytes = plan.overhead_bytes();
    result_.planned_peak_bytes = plan.planned_peak_bytes;
    result_.in_memory_bytes = plan.in_memory_bytes;
    result_.plan_seconds = plan.plan_seconds;
    result_.predicted_step_seconds = plan.predicted_step_seconds;
    if (plan.profile && plan.training)
      result_.bound_seconds = bound_seconds(job_.program, plan, *plan.profile);
    result_.swap_file_bytes = engine_->swap_bytes();
    if (job_.ranks->size() > 1) {
      job_.note(fmt::format("{} ranks x batch {} = {} images a step, {} threads each", job_.ranks->size(),
                            job_.options.batch, job_.whole_batch(), job_.threads));
    }
    if (plan.policy != "keep") {
      job_.note(
          fmt::format("{} batch {} needs {} in memory; training within {} with policy {}, swapping to {}",
                      job_.network.name, job_.options.batch, format_bytes(plan.in_memory_bytes),
                      format_bytes(plan.budget_bytes), plan.policy, result_.tier));
    }
  }

  void fill_state() {
    const double begin = run::clock_seconds();
    state_->initialise(job_.seed);
    if (!job_.options.init_file.empty()) load_weights(job_.options.init_file, *state_);
    if (!job_.options.resume_dir.empty()) read_checkpoint(job_.options.resume_dir, *state_, job_.training);
    std::int64_t bytes = 0;
    for (const StateEntry& entry : state_->entries()) bytes += entry.size_bytes();
    job_.phase("fill", run::clock_seconds() - begin,
               fmt::format("{} of state in {} tensors", format_bytes(bytes), state_->entries().size()));
  }

  void train_steps() {
    const double started = run::clock_seconds();
    Loader loader(*job_.data.train, job_.sampler(), job_.position,
                  std::max<std::int64_t>(0, job_.steps - job_.first_step));
    const int loss_port = job_.program.training->graph.find_output("loss");
    kernels::StepContext context;
    context.seed = job_.seed;
    context.first_sample = job_.ranks->rank() * job_.options.batch;
    context.exchanger = &exchanger_;
    context.feed = [&](int input, void* to) { feed_part(loader, input, to); };
    float step_loss = 0;
    context.take = [&](int output, const void* from) {
      if (output == loss_port) std::memcpy(&step_loss, from, sizeof(step_loss));
    };
    std::vector<double> stalls, recomputes, computes;
    run::Trace events;
    events.looks_at_transfers = recorder_.wanted();
    engine_->set_trace(&events);
    Pace pace(job_.program, *engine_);
    const dist::ExchangeStats before = job_.ranks->communicator().stats();
    SlowWatch watch(job_.program, *engine_, job_.threads);
    for (std::int64_t step = job_.first_step; step < job_.steps; ++step) {
      const std::int64_t epoch = loader.position().epoch;
      context.step = static_cast<std::uint64_t>(step);
      context.learning_rate = job_.schedule.at(step);
      const double begin = run::clock_seconds();
      const run::StepStats stats = engine_->train_step(context);
      const double loss = mean_over_ranks(*job_.ranks, step_loss);
      result_.step_seconds.push_back(run::clock_seconds() - begin);
      result_.loss.push_back(loss);
      result_.swapped_out_bytes = stats.swapped_out_bytes;
      result_.swapped_in_bytes = stats.swapped_in_bytes;
      stalls.push_back(stats.stall_seconds);
      recomputes.push_back(stats.recompute_seconds);
      computes.push_back(stats.compute_seconds);
      if (job_.options.settle_steps) engine_->executor().quiesce();
      tell(step + 1, epoch, stats);
      recorder_.after_step(step + 1, events, *engine_->memory_plan().training);
      if (const auto why = watch.after_step(stats)) job_.note(*why);
      if (step + 1 < job_.steps) {
        if (const auto line = pace.after_step(stats, events)) job_.note(*line);
      }
      events.events.clear();
      if (!std::isfinite(loss)) {
        job_.ranks->fail_together(
            fmt::format("the loss is {} at step {}; a smaller --lr or a --schedule with warmup may help",
                        loss, step + 1));
      }
      const bool last = step + 1 == job_.steps;
      if (!job_.options.checkpoint_dir.empty() &&
          (last || (job_.options.checkpoint_every > 0 && (step + 1) % job_.options.checkpoint_every == 0))) {
        save_checkpoint(step + 1, loader.position());
      }
    }
    note_exchanges(before);
    engine_->set_trace(nullptr);
    if (const std::string why = watch.whole_run(); !why.empty()) {
      job_.note("on average " + why);
      recorder_.add_note("On average " + why + ".");
    }
    job_.phase("train", run::clock_seconds() - started,
               fmt::format("{} steps, {} images", result_.step_seconds.size(),
                           static_cast<std::int64_t>(result_.step_seconds.size()) * job_.whole_batch()));
    planner_.keep_seen(pace, engine_->memory_plan());
    result_.stall_seconds = upper_median(stalls);
    result_.recompute_seconds = upper_median(recomputes);
    result_.compute_seconds = upper_median(computes);
    result_.replans = pace.replans();
    result_.predicted_step_seconds = engine_->memory_plan().predicted_step_seconds;
    result_.skipped_images = loader.skipped_count();
    const std::vector<std::string> skipped = loader.skipped();
    for (std::size_t i = 0; i < std::min<std::size_t>(5, skipped.size()); ++i)
      job_.note("skipped: " + skipped[i]);
  }

  void save_checkpoint(std::int64_t steps_done, const DataPosition& position) {
    if (job_.ranks->rank() != 0) return state_->lend_shards();
    write_checkpoint(job_.options.checkpoint_dir,
                     {job_.network.name, job_.options.optimizer, job_.options.data, job_.whole_batch(),
                      steps_done, position, job_.seed, {}},
                     *state_);
  }

  void note_exchanges(const dist::ExchangeStats& before) {
    const dist::ExchangeStats stats = job_.ranks->communicator().stats();
    const std::int64_t steps = std::max<std::int64_t>(1, job_.steps - job_.first_step);
    result_.network_bytes = (stats.sent_bytes - before.sent_bytes) / steps;
    result_.reduce_seconds = (stats.busy_seconds - before.busy_seconds) / static_cast<double>(steps);
    result_.reduce_wait_seconds = (stats.wait_seconds - before.wait_seconds) / static_cast<double>(steps);
    result_.network_bandwidth = job_.speed.bandwidth;
    result_.network_latency_seconds = job_.speed.latency_seconds;
  }

  void tell(std::int64_t done, std::int64_t epoch, const run::StepStats& stats) {
    if (!job_.options.on_step || job_.ranks->rank() != 0) return;
    Progress progress;
    progress.step = done;
    progress.steps = job_.steps;
    progress.epoch = epoch;
    progress.loss = result_.loss.back();
    progress.step_seconds = result_.step_seconds.back();
    const std::size_t recent = std::min<std::size_t>(result_.step_seconds.size(), 10);
    const double typical = upper_median(
        {result_.step_seconds.end() - static_cast<std::ptrdiff_t>(recent), result_.step_seconds.end()});
    progress.images_per_second = static_cast<double>(job_.whole_batch()) / typical;
    progress.learning_rate = job_.schedule.at(done - 1);
    progress.seconds_left = typical * static_cast<double>(job_.steps - done);
    progress.compute_seconds = stats.compute_seconds;
    progress.recompute_seconds = stats.recompute_seconds;
    progress.stall_seconds = stats.stall_seconds;
    progress.stall_share = stats.stall_seconds / progress.step_seconds;
    progress.swapped_out_bytes = stats.swapped_out_bytes;
    progress.swapped_in_bytes = stats.swapped_in_bytes;
    progress.pool_peak_bytes = stats.peak_pool_bytes;
    progress.memory_bytes = process_memory().resident_bytes;
    progress.budget_bytes =
        job_.options.memory.empty() && job_.options.plan_file.empty() ? 0 : result_.budget_bytes;
    job_.options.on_step(progress);
  }

  void evaluate_split() {
    const double started = run::clock_seconds();
    take_statistics_of_rank_0(*job_.ranks, *state_);
    SamplerOptions options;
    options.rank = job_.ranks->rank();
    options.ranks = job_.ranks->size();
    options.samples = job_.data.test->size();
    options.batch = job_.options.batch;
    options.shuffle = false;
    options.last_batch = LastBatch::fill;
    options.data_name = job_.data.test->name();
    const Sampler order(options);
    const std::int64_t batches = order.batches_per_epoch();
    Loader loader(*job_.data.test, order, {}, batches);
    const std::int64_t labels_per_image = job_.data.test->geometry().label_values();
    kernels::StepContext context;
    context.seed = job_.seed;
    const int correct_port = job_.program.evaluation->graph.find_output("correct");
    std::int32_t batch_correct = 0;
    context.take = [&](int output, const void* from) {
      if (output == correct_port) std::memcpy(&batch_correct, from, sizeof(batch_correct));
    };
    std::int64_t correct = 0;
    std::vector<double> seconds;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      context.feed = [&](int input, void* to) {
        feed_part(loader, input, to);
        if (input == kImagesInput) return;
        // No answer is right for the images that only fill up the last batch.
        auto* labels = static_cast<std::int32_t*>(to);
        std::fill(labels + order.valid_samples(batch) * labels_per_image,
                  labels + job_.options.batch * labels_per_image, -1);
      };
      const double begin = run::clock_seconds();
      engine_->evaluate_step(context);
      correct += batch_correct;
      seconds.push_back(run::clock_seconds() - begin);
    }
    correct = sum_over_ranks(*job_.ranks, correct);
    result_.test_images = job_.data.test->size();
    result_.accuracy =
        static_cast<double>(correct) / static_cast<double>(job_.data.test->size() * labels_per_image);
    if (!job_.training)
      result_.images_per_second = static_cast<double>(job_.whole_batch()) / upper_median(seconds);
    job_.phase("evaluate", run::clock_seconds() - started,
               fmt::format("{} images, accuracy {:.2f} %", result_.test_images, 100 * result_.accuracy));
  }

  void finish() {
    if (!job_.options.save_file.empty() && job_.ranks->rank() == 0)
      save_weights(job_.options.save_file, *state_);
    result_.weights_sha256 = state_->sha256();
    result_.model = job_.network.name;
    result_.batch = job_.options.batch;
    result_.steps = job_.steps;
    result_.seed = job_.seed;
    result_.pool_peak_bytes = engine_->pool().peak_bytes();
    result_.fragmentation_bytes = engine_->pool().peak_lost_bytes();
    result_.peak_by_tag = engine_->budget().peak_breakdown();
    result_.peak_rss_bytes = std::max(planner_.earlier_peak_bytes(), process_memory().peak_resident_bytes);
    result_.ranks = job_.ranks->size();
    result_.effective_batch = job_.whole_batch();
    result_.rank_peak_rss_bytes = of_all_ranks(*job_.ranks, result_.peak_rss_bytes);
    if (job_.training && !result_.step_seconds.empty()) {
      std::vector<double> later(result_.step_seconds.begin() + (result_.step_seconds.size() > 1 ? 1 : 0),
                                result_.step_seconds.end());
      result_.images_per_second = static_cast<double>(job_.whole_batch()) / upper_median(std::move(later));
    }
  }

  /// Writes trace and report in the memory that the pool gives back.
  void record() {
    if (!recorder_.wanted()) return;
    const MemoryPlan plan = engine_->memory_plan();
    state_.reset();
    engine_.reset();
    recorder_.write(job_.program, plan, result_);
  }

  Job job_;
  BudgetPlanner planner_;
  RankExchanger exchanger_;
  Recorder recorder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<StateIo> state_;
  Result result_;
};

}  // namespace
}  // namespace training

Result train(const Network& network, const Options& options) {
  return training::Run(network, options, training::Purpose::train).go();
}

Result evaluate(const Network& network, const Options& options) {
  return training::Run(network, options, training::Purpose::evaluate).go();
}

const char* version() {
  return "0.1.0";
}

}  // namespace penstock
