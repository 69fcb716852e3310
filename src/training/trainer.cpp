#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "dist/communicator.h"
#include "memory/process.h"
#include "models/text_catalog.h"
#include "penstock/training.h"
#include "training/job.h"
#include "training/same_start.h"
#include "training/step_record.h"

namespace penstock {
namespace training {
namespace {

/// One run of `train` or `evaluate`, from the options to the result: a client of the session.
class Run {
 public:
  Run(const ModelChoice& model, const TrainingOptions& options, Purpose purpose)
      : job_(model, options, purpose) {}

  TrainingResult go() {
    const double begin = clock_seconds();
    job_.ranks->together([&] { job_.set_up(); });
    require_same_start(*job_.ranks, job_.start());
    if (job_.ranks->size() > 1) {
      job_.note(fmt::format("{} ranks x batch {} = {} {} a step", job_.ranks->size(), job_.options.batch,
                            job_.whole_batch(), samples_word()));
    }
    open_session();
    base_rate_ = session_->learning_rate();
    job_.ranks->together([&] { fill_state(); });
    // What comes from files may differ from machine to machine.
    const bool from_files = !job_.options.init_file.empty() || !job_.options.resume_dir.empty();
    if (from_files && job_.ranks->size() > 1)
      require_same_start(*job_.ranks, {{"set of weights, by its SHA-256", sha256_of_every_rank()}});
    result_.startup_seconds = clock_seconds() - begin;
    job_.ranks->side_by_side(
        [&] {
          if (job_.training) train_steps();
          // Weights come first: an evaluation that fails must not lose them.
          save_weights();
          result_.weights_sha256 = session_->state_sha256();
          if (job_.evaluating && !result_.stopped) evaluate_split();
          finish();
        },
        job_.options.on_rank_failure);
    return std::move(result_);
  }

 private:
  /// Of the state that every rank has as a whole: where the optimizer's is sharded, rank 0 alone can see
  /// that.
  std::string sha256_of_every_rank() {
    if (!job_.options.session.ranks.shard_optimizer) return session_->state_sha256();
    Sha256 sha;
    for (const StateInfo& info : session_->state()) {
      if (info.kind == StateKind::optimizer) continue;
      session_->read(info.name, [&sha](std::span<const float> values) {
        sha.update(values.data(), values.size_bytes());
      });
    }
    return sha.finish();
  }

  void open_session() {
    try {
      session_.emplace(job_.network(job_.micro_batch()), job_.options.optimizer, job_.session_options());
    } catch (const BudgetTooSmall& error) {
      if (job_.ranks->size() > 1) throw;
      BudgetFacts facts = error.facts();
      SessionOptions options = job_.session_options();
      options.memory.budget_bytes = facts.budget_bytes;
      facts.largest_batch = largest_batch_below([this](std::int64_t batch) { return job_.network(batch); },
                                                job_.micro_batch(), job_.options.optimizer, options);
      throw BudgetTooSmall(facts);
    }
  }

  void fill_state() {
    const double begin = clock_seconds();
    const std::string& init = job_.options.init_file;
    const std::string& resume = job_.options.resume_dir;
    if (job_.file) job_.file->fill(*session_);
    if (!init.empty()) session_->load(init);
    if (!resume.empty()) session_->load_checkpoint(resume, job_.training);
    if (!init.empty() || !resume.empty())
      job_.phase("load", clock_seconds() - begin, "from " + (resume.empty() ? init : resume));
  }

  void save_weights() {
    const std::string& path = job_.options.save_file;
    if (path.empty()) return;
    if (onnx::is_onnx_path(path)) {
      if (job_.ranks->rank() == 0) job_.file->save(*session_, path);
    } else if (job_.saves_folder()) {
      // What belongs to a model of the hub.
      session_->save(path + "/model.safetensors");
      if (job_.ranks->rank() == 0)
        write_file(path + "/config.json", models::text_model_config(job_.model.name, job_.sizes.classes));
    } else {
      session_->save(path);
    }
  }

  void train_steps() {
    const double started = clock_seconds();
    const std::unique_ptr<Feed> feed = job_.training_feed();
    const Inputs inputs = feed->inputs();
    const dist::ExchangeStats before = job_.ranks->communicator().stats();
    for (std::int64_t step = job_.first_step; step < job_.steps && !result_.stopped; ++step) {
      const std::int64_t epoch = feed->position().epoch;
      session_->set_learning_rate(job_.options.schedule.at(step, job_.steps, base_rate_));
      const double begin = clock_seconds();
      const StepResult done = session_->step(inputs);
      record_.add(done.loss, clock_seconds() - begin, done.stats, done.gradient_norm);
      if (job_.options.settle_steps) session_->settle();
      tell(step + 1, epoch, done.stats);
      if (!std::isfinite(done.loss)) {
        job_.ranks->fail_together(fmt::format(
            "the loss is {} at step {}; a smaller learning rate or a schedule with warm-up may help",
            done.loss, step + 1));
      }
      result_.stopped = stop_requested() && step + 1 < job_.steps;
      const bool last = step + 1 == job_.steps || result_.stopped;
      const std::int64_t every = job_.options.checkpoint_every;
      if (!job_.options.checkpoint_dir.empty() && (last || (every > 0 && (step + 1) % every == 0)))
        session_->save_checkpoint(job_.options.checkpoint_dir, job_.facts(feed->position()),
                                  job_.options.keep_checkpoints);
    }
    note_exchanges(before);
    if (const std::string why = session_->why_slower(); !why.empty()) {
      job_.note("on average " + why);
      notes_.push_back("On average " + why + ".");
    }
    job_.phase("train", clock_seconds() - started,
               fmt::format("{} steps, {} {}", record_.steps(), record_.steps() * job_.whole_batch(),
                           samples_word()));
    result_.skipped_samples = feed->skipped_count();
    const std::vector<std::string> skipped = feed->skipped();
    for (std::size_t i = 0; i < std::min<std::size_t>(5, skipped.size()); ++i)
      job_.note("skipped: " + skipped[i]);
  }

  /// All ranks stop at the same step.
  bool stop_requested() {
    if (!job_.options.stop_requested) return false;
    const bool here = job_.options.stop_requested();
    return job_.ranks->size() == 1 ? here : job_.ranks->sum(here ? 1 : 0) > 0;
  }

  void note_exchanges(const dist::ExchangeStats& before) {
    const dist::ExchangeStats stats = job_.ranks->communicator().stats();
    const std::int64_t steps = std::max<std::int64_t>(1, record_.steps());
    result_.sent_bytes = (stats.sent_bytes - before.sent_bytes) / steps;
    result_.reduce_seconds = (stats.busy_seconds - before.busy_seconds) / static_cast<double>(steps);
    result_.reduce_wait_seconds = (stats.wait_seconds - before.wait_seconds) / static_cast<double>(steps);
  }

  void tell(std::int64_t done, std::int64_t epoch, const StepStats& stats) {
    if (!job_.options.on_step || job_.ranks->rank() != 0) return;
    Progress progress;
    progress.step = done;
    progress.steps = job_.steps;
    progress.epoch = epoch;
    progress.loss = record_.last_loss();
    progress.gradient_norm = record_.last_gradient_norm();
    progress.step_seconds = record_.last_seconds();
    const double typical = record_.recent_seconds();
    progress.samples_per_second = static_cast<double>(job_.whole_batch()) / typical;
    progress.tokens_per_sample = job_.sequence;
    progress.learning_rate = session_->learning_rate();
    progress.seconds_left = typical * static_cast<double>(job_.steps - done);
    progress.stats = stats;
    progress.memory_bytes = process_memory().resident_bytes;
    const MemoryOptions& memory = job_.options.session.memory;
    const bool named = memory.budget_bytes > 0 || !memory.plan_file.empty();
    progress.budget_bytes = named ? session_->plan().budget_bytes : 0;
    job_.options.on_step(progress);
  }

  void evaluate_split() {
    const double started = clock_seconds();
    const Sampler order = job_.evaluation_sampler();
    const std::unique_ptr<Feed> feed = job_.evaluation_feed();
    const Inputs inputs = feed->inputs();
    std::int64_t correct = 0, labels = 0;
    double loss = 0;
    StepRecord seconds;
    for (std::int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
      const double begin = clock_seconds();
      const std::int64_t counted = feed->counted_labels();
      const StepResult done = session_->run(inputs);
      // A batch where nothing counts has no mean.
      if (counted > 0) loss += done.loss * static_cast<double>(counted);
      labels += counted;
      if (!job_.is_text()) correct += done.outputs.at("correct").integers()[0];
      seconds.add(done.loss, clock_seconds() - begin, done.stats);
    }
    labels = job_.ranks->sum(labels);
    result_.test_samples = job_.evaluation_samples();
    if (!job_.training)
      result_.samples_per_second = static_cast<double>(job_.whole_batch()) / seconds.typical().step_seconds;
    if (job_.is_text()) {
      // The mean over ranks times their number is the sum.
      result_.validation_loss =
          job_.ranks->mean(loss) * static_cast<double>(job_.ranks->size()) / static_cast<double>(labels);
      job_.phase("evaluate", clock_seconds() - started,
                 fmt::format("{} tokens, loss {:.4f}, perplexity {:.2f}", labels, result_.validation_loss,
                             std::exp(result_.validation_loss)));
      return;
    }
    result_.accuracy = static_cast<double>(job_.ranks->sum(correct)) / static_cast<double>(labels);
    job_.phase("evaluate", clock_seconds() - started,
               fmt::format("{} images, accuracy {:.2f} %", result_.test_samples, 100 * result_.accuracy));
  }

  const char* samples_word() const { return job_.is_text() ? "sequences" : "images"; }

  void finish() {
    result_.model = job_.model.name;
    result_.batch = job_.options.batch;
    result_.sequence = job_.sequence;
    result_.steps = result_.stopped ? session_->steps_done() : job_.steps;
    result_.seed = job_.seed;
    result_.threads = session_->threads();
    result_.plan = session_->plan();
    result_.tier = session_->tier_description();
    result_.pool_peak_bytes = session_->pool_peak_bytes();
    result_.fragmentation_bytes = session_->lost_bytes();
    result_.peak_by_tag = session_->peak_bytes_by_tag();
    result_.replans = session_->replans();
    result_.peak_rss_bytes = process_memory().peak_resident_bytes;
    result_.ranks = job_.ranks->size();
    result_.effective_batch = job_.whole_batch();
    result_.rank_peak_rss_bytes = job_.ranks->all(result_.peak_rss_bytes);
    if (!job_.training || record_.steps() == 0) return;
    result_.loss = record_.loss();
    if (job_.options.optimizer.clip_norm > 0) result_.gradient_norm = record_.gradient_norm();
    result_.step_seconds = record_.step_seconds();
    result_.kept_every = record_.every();
    result_.train_seconds = record_.seconds_in_all();
    result_.typical = record_.typical();
    result_.samples_per_second = static_cast<double>(job_.whole_batch()) / result_.typical.step_seconds;
    record();
  }

  /// Writes trace and report in the memory that the session gives back.
  void record() {
    const TrainingOptions& options = job_.options;
    if (job_.ranks->rank() != 0 || (options.trace_file.empty() && options.report_file.empty())) return;
    RunStory story;
    story.title = job_.model.name;
    story.command = options.command;
    story.batch = options.batch;
    story.weights_sha256 = result_.weights_sha256;
    story.loss = result_.loss;
    story.step_seconds = result_.step_seconds;
    story.kept_every = result_.kept_every;
    story.steps = record_.steps();
    story.typical = result_.typical;
    story.startup_seconds = result_.startup_seconds;
    story.peak_rss_bytes = result_.peak_rss_bytes;
    story.accuracy = result_.accuracy;
    story.test_samples = result_.test_samples;
    story.notes = notes_;
    session_->finish(options.trace_file, options.report_file, story);
  }

  Job job_;
  std::optional<Session> session_;
  double base_rate_ = 0;
  StepRecord record_;
  std::vector<std::string> notes_;
  TrainingResult result_;
};

}  // namespace
}  // namespace training

TrainingResult train(const ModelChoice& model, const TrainingOptions& options) {
  return training::Run(model, options, training::Purpose::train).go();
}

TrainingResult evaluate(const ModelChoice& model, const TrainingOptions& options) {
  return training::Run(model, options, training::Purpose::evaluate).go();
}

ForecastTable plan_training(const ModelChoice& model, const TrainingOptions& options,
                            const ForecastRequest& request) {
  training::Job job(model, options, training::Purpose::plan);
  job.set_up();
  return forecast([&job](std::int64_t batch) { return job.network(batch); }, job.micro_batch(),
                  options.optimizer, job.session_options(), request);
}

}  // namespace penstock
