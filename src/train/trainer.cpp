#include <fmt/format.h>
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/median.h"
#include "base/text_file.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "memory/process.h"
#include "penstock/penstock.h"
#include "plan/budget_error.h"
#include "report/explain.h"
#include "tier/swap_dir.h"
#include "train/checkpoint.h"
#include "train/engine.h"
#include "train/network.h"
#include "train/pace.h"
#include "train/planned.h"
#include "train/profile_store.h"
#include "train/rank_exchange.h"
#include "train/recorder.h"
#include "train/schedule.h"
#include "train/slow_watch.h"
#include "train/state_io.h"

namespace penstock {
namespace training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What the process takes beside code, kernels, pool and loader, none of it touched when the budget is
/// divided: thread stacks, heap growth, page tables, the kernel's side of the I/O.
constexpr std::int64_t kMarginBytes = 20 * kMiB;

/// The process's own share differs a little from run to run; a budget that is advised has so much more.
constexpr std::int64_t kUnsteadyBytes = 6 * kMiB;

/// Where the search for the largest batch ends.
constexpr std::int64_t kLargestBatch = 1 << 20;

enum class Purpose { train, evaluate, plan };

/// One run of `train`, `evaluate` or `plan`, from the options to the result.
class Run {
 public:
  Run(const Network& network, const Options& options, Purpose purpose)
      : network_(network),
        options_(options),
        planning_(purpose == Purpose::plan),
        training_(purpose != Purpose::evaluate),
        evaluating_(purpose == Purpose::evaluate || options.evaluate),
        ranks_(options.ranks ? options.ranks : std::make_shared<Ranks>(dist::make_alone())),
        exchanger_(ranks_->communicator()),
        recorder_(options, ranks_->rank() == 0) {}

  Result go() {
    begin_ = Clock::now();
    ranks_->together([&] {
      check_options();
      set_threads();
      open();
      resume_info();
    });
    if (training_) speed_ = dist::measure_network(ranks_->communicator());
    ranks_->together([&] { build(); });
    if (training_) check_same_exchanges(*ranks_, program_.training->graph);
    ranks_->together([&] {
      prepare();
      fill_state();
    });
    result_.startup_seconds = seconds_since(begin_);
    ranks_->side_by_side(
        [&] {
          if (training_) train_steps();
          if (evaluating_) evaluate_split();
          finish();
          record();
        },
        options_.on_rank_failure);
    return std::move(result_);
  }

  PlanResult plan(const PlanRequest& request) {
    if (!request.out_file.empty()) check_writable(request.out_file, "--out");
    if (!request.out_file.empty() && options_.memory.empty())
      throw UserError("--out needs --memory: a plan is for one budget");
    if (request.largest_batch && options_.memory.empty())
      throw UserError("--max-batch needs --memory: the budget that the batch is to fit");
    check_options();
    set_threads();
    open();
    build();
    PlanResult result;
    result.model = network_.name;
    result.batch = options_.batch;
    result.threads = result_.threads;
    profile_ = found_profile();
    result.profile_source = result_.profile_source;
    malloc_trim(0);
    const Overhead beside = overhead(options_.batch);
    // Other budgets are looked at with what this process had before it looked at the first.
    program_bytes_ = beside.at("program");
    result.in_memory_step_seconds = keep_seconds(program_, options_, beside, *profile_);
    result.in_memory_bytes = in_memory_bytes(program_, options_, beside);
    result.smallest_bytes = smallest_budget(beside);
    for (const std::int64_t budget : budgets(result)) plan_budget(budget, request, result);
    program_bytes_ = 0;
    if (request.largest_batch) result.largest_batch = largest_batch_from(named_budget());
    return result;
  }

 private:
  void note(const std::string& line) const {
    if (options_.on_note && ranks_->rank() == 0) options_.on_note(line);
  }

  /// Tells that a part of the run is over.
  void phase(const char* name, double seconds, const std::string& detail) const {
    if (options_.on_phase && ranks_->rank() == 0) options_.on_phase({name, seconds, detail});
  }

  void check_options() {
    if (options_.batch < 1) throw UserError(fmt::format("--batch {}: it must be at least 1", options_.batch));
    if (training_ && !planning_ && (options_.steps < 1) == (options_.epochs < 1)) {
      throw UserError("say how long to train: --steps N or --epochs N, one of them");
    }
    optimizer_.kind = parse_optimizer(options_.optimizer);
    optimizer_.momentum = static_cast<float>(options_.momentum);
    optimizer_.nesterov = options_.nesterov;
    optimizer_.weight_decay = static_cast<float>(options_.weight_decay);
    check(optimizer_);
    if (options_.shard_optimizer && ranks_->size() == 1) {
      note("--shard-optimizer has nobody to share with: there is one rank");
    }
    if (ranks_->rank() == 0) check_outputs();
    if (options_.checkpoint_every > 0 && options_.checkpoint_dir.empty()) {
      throw UserError("--checkpoint-every needs --checkpoint DIR");
    }
    if (!options_.swap_dir.empty()) check_swap_dir(options_.swap_dir, 0);
    if (!options_.init_file.empty() && !options_.resume_dir.empty()) {
      throw UserError(
          "--init and --resume exclude each other: one says where to start, the other where to go on");
    }
    if (!training_ && options_.init_file.empty() && options_.resume_dir.empty()) {
      throw UserError("say which weights to evaluate: --init FILE or --resume DIR");
    }
  }

  void check_outputs() const {
    recorder_.check();
    if (!options_.save_file.empty()) check_writable(options_.save_file, "--save");
    if (!options_.checkpoint_dir.empty()) {
      check_writable(
          (std::filesystem::path(options_.checkpoint_dir) / "..").lexically_normal() / "checkpoint",
          "--checkpoint");
    }
  }

  void set_threads() {
    result_.threads = options_.threads > 0 ? options_.threads : threads_of_rank(*ranks_);
    omp_set_num_threads(result_.threads);
  }

  /// Data and network agree on sizes: what the user says goes first, then what the data has, then the model's
  /// own.
  void open() {
    const models::ModelInfo info = network_info(network_);
    DataRequest request;
    request.source = options_.data;
    request.seed = options_.seed;
    request.per_pixel_labels = info.per_pixel;
    request.volumetric = info.volumetric;
    const bool own_size = options_.data != "synthetic" && !options_.data.starts_with("images:");
    request.channels = network_.channels > 0 ? network_.channels : own_size ? 0 : info.channels;
    request.image_size = network_.image_size > 0 ? network_.image_size : own_size ? 0 : info.image_size;
    request.classes = network_.classes > 0           ? network_.classes
                      : options_.data == "synthetic" ? info.classes
                                                     : 0;
    data_ = open_data(request);
    for (const std::string& warning : data_.warnings) note(warning);
    const DataGeometry& geometry = data_.train->geometry();
    if (geometry.height != geometry.width || (info.volumetric && geometry.depth != geometry.height)) {
      throw UserError(fmt::format("{}: images of {} x {} are not square; say --image-size N",
                                  data_.train->name(), geometry.height, geometry.width));
    }
    model_.batch = options_.batch;
    model_.channels = geometry.channels;
    model_.image_size = geometry.height;
    model_.classes = geometry.classes;
  }

  /// Samples of a step of all ranks.
  std::int64_t whole_batch() const { return options_.batch * ranks_->size(); }

  Sampler sampler() const {
    SamplerOptions options;
    options.rank = ranks_->rank();
    options.ranks = ranks_->size();
    options.samples = data_.train->size();
    options.batch = options_.batch;
    options.seed = seed_;
    options.shuffle = options_.shuffle;
    options.data_name = data_.train->name();
    return Sampler(options);
  }

  void resume_info() {
    seed_ = options_.seed;
    if (!options_.resume_dir.empty()) {
      const CheckpointInfo info = read_checkpoint_info(options_.resume_dir);
      if (info.model != network_.name) {
        throw UserError(fmt::format("the checkpoint in '{}' is of {}, not of {}", options_.resume_dir,
                                    info.model, network_.name));
      }
      if (training_) {
        if (info.optimizer != options_.optimizer || info.data != options_.data) {
          throw UserError(fmt::format(
              "the checkpoint in '{}' was made with --optimizer {} --data {}; resume with the same",
              options_.resume_dir, info.optimizer, info.data));
        }
        if (info.batch != whole_batch()) {
          throw UserError(
              ranks_->size() == 1
                  ? fmt::format(
                        "the checkpoint in '{}' was made with --batch {}, not {}; resume with the same",
                        options_.resume_dir, info.batch, options_.batch)
                  : fmt::format(
                        "the checkpoint in '{}' was made with a batch of {} in all; resume with --batch "
                        "and ranks that make the same, not {} x {}",
                        options_.resume_dir, info.batch, options_.batch, ranks_->size()));
        }
        if (info.seed != seed_) note(fmt::format("going on with the checkpoint's seed {}", info.seed));
        seed_ = info.seed;
        first_step_ = info.step;
        position_ = info.position;
      }
    }
    if (!training_) return;
    const std::int64_t per_epoch = sampler().batches_per_epoch();
    steps_ = options_.steps > 0 ? options_.steps : options_.epochs * per_epoch;
    const double rate =
        options_.learning_rate > 0 ? options_.learning_rate : default_learning_rate(optimizer_.kind);
    schedule_ = Schedule::parse(options_.schedule, rate, steps_);
    if (first_step_ > 0) {
      note(fmt::format("resuming after step {} of {}", first_step_, steps_));
    }
  }

  void build() {
    const auto begin = Clock::now();
    program_ = make_program(network_, model_, training_ ? &optimizer_ : nullptr, evaluating_,
                            exchange_options(options_, *ranks_), dynamic_kernels());
    malloc_trim(0);
    // Before any rank of this machine takes its pool.
    available_bytes_ = available_memory_bytes() / ranks_->communicator().local_size();
    phase("build", seconds_since(begin),
          fmt::format("{} ops, {} storages, process {}", program_.state_graph().ops.size(),
                      program_.state_graph().storages, format_bytes(process_memory().resident_bytes)));
  }

  std::int64_t named_budget() const { return parse_memory_budget(options_.memory, available_bytes_); }

  bool dynamic_kernels() const {
    if (options_.kernels != "fixed" && options_.kernels != "dynamic") {
      throw UserError(
          fmt::format("--kernels '{}' is not known; there are fixed and dynamic", options_.kernels));
    }
    return options_.kernels == "dynamic";
  }

  /// Divides the budget between the program and the pool.
  void prepare() {
    const bool from_file = training_ && !options_.plan_file.empty();
    const bool named = !options_.memory.empty() || from_file;
    std::int64_t budget = !options_.memory.empty() ? named_budget()
                          : from_file              ? 0
                                                   : default_memory_budget(available_bytes_);
    MemoryPlan plan = from_file ? plan_from_file(budget) : plan_within(budget);
    budget = plan.budget_bytes;
    if (!named) note(fmt::format("memory: {} (what is free, less a margin)", format_bytes(budget)));
    phase("plan", plan.plan_seconds,
          fmt::format("policy {}, pool {} and {} beside it, of {}; {} to run again each step", plan.policy,
                      format_bytes(plan.planned_peak_bytes), format_bytes(plan.overhead_bytes()),
                      format_bytes(budget), plan.training ? plan.training->summary.recomputed : 0));
    engine_ = std::make_unique<Engine>(program_, options_, std::move(plan));
    state_ = std::make_unique<StateIo>(program_, engine_->executor(), &ranks_->communicator());
    for (const std::string& line : engine_->notes()) note(line);
    describe();
  }

  MemoryPlan plan_from_file(std::int64_t budget) const {
    return memory_plan_from_json(program_, options_, budget, overhead(options_.batch),
                                 read_file(options_.plan_file), options_.plan_file);
  }

  MemoryPlan plan_within(std::int64_t budget) {
    try {
      return plan_twice(budget);
    } catch (const plan::BudgetError& error) {
      refuse(error, budget);
    }
  }

  /// Throws BudgetError.
  MemoryPlan plan_twice(std::int64_t budget) {
    // Planning itself leaves some memory behind, so what the process really has is looked at once more
    // afterwards. Which pool is best is asked only then.
    Options rough = options_;
    if (rough.pool == "auto") rough.pool = "virtual";
    MemoryPlan plan = plan_memory(program_, rough, budget, overhead(options_.batch), profile_source());
    malloc_trim(0);
    Overhead after = overhead(options_.batch);
    if (plan.profile) after["planner"] = plan.planner_bytes;  // to plan again with, between two steps
    if (after.at("program") > plan.overhead.at("program") || after.contains("planner") ||
        options_.pool == "auto") {
      earlier_peak_bytes_ = plan.earlier_peak_bytes;
      try {
        plan = plan_memory(program_, options_, budget, after, profile_source());
      } catch (const plan::BudgetError&) {
        // Where there is no room to plan again, the first plan has to do.
        if (after.erase("planner") == 0) throw;
        plan = plan_memory(program_, options_, budget, after, profile_source());
      }
    }
    earlier_peak_bytes_ = std::max(earlier_peak_bytes_, plan.earlier_peak_bytes);
    return plan;
  }

  /// For `plan`: what is there already, unless the user wants it measured; else an estimate.
  plan::Profile found_profile() {
    ProfileStore store(program_, options_, result_.threads);
    plan::Profile profile;
    if (options_.profile == "fresh") {
      profile = store.get();
      result_.profile_source = store.source();
    } else if (store.find(profile)) {
      result_.profile_source = options_.profile;
    } else {
      profile = estimated_profile(program_, options_);
      result_.profile_source = "estimate";
    }
    return profile;
  }

  std::int64_t smallest_budget(const Overhead& beside) const {
    try {
      return plan_memory(program_, options_, 0, beside).budget_bytes;
    } catch (const plan::BudgetError& error) {
      return advised_mib(error) * kMiB;
    }
  }

  /// The named one, or some from the smallest to what all in memory takes.
  std::vector<std::int64_t> budgets(const PlanResult& result) const {
    if (!options_.memory.empty()) return {named_budget()};
    const std::int64_t most = round_up(result.in_memory_bytes + kUnsteadyBytes, kMiB);
    std::vector<std::int64_t> all;
    for (const double share : {0.0, 0.1, 0.25, 0.5, 0.75}) {
      const auto more = static_cast<std::int64_t>(static_cast<double>(most - result.smallest_bytes) * share);
      const std::int64_t budget = round_up(result.smallest_bytes + more, kMiB);
      if (budget < most && (all.empty() || budget > all.back())) all.push_back(budget);
    }
    all.push_back(most);
    return all;
  }

  void plan_budget(std::int64_t budget, const PlanRequest& request, PlanResult& result) {
    PlannedBudget row;
    row.budget_bytes = budget;
    try {
      const MemoryPlan plan = plan_twice(budget);
      row = describe_plan(program_, plan, *profile_, result.in_memory_step_seconds, options_.batch);
      if (!request.explain.empty() && !options_.memory.empty())
        result.explanation =
            report::explain(planned_problem(program_, plan), *plan.training, *profile_, request.explain);
      if (!request.out_file.empty())
        write_file(request.out_file, memory_plan_to_json(program_, plan, network_.name, options_.batch));
    } catch (const plan::BudgetError&) {
      row.feasible = false;
    }
    result.budgets.push_back(row);
  }

  /// The program's profile, got once.
  ProfileSource profile_source() {
    if (!training_) return {};
    if (!profiles_) profiles_ = std::make_unique<ProfileStore>(program_, options_, result_.threads);
    return [this] {
      if (!profile_) {
        const auto begin = Clock::now();
        profile_ =
            profiles_->get([this] { note("measuring kernels and tier, once for this network and machine"); });
        result_.profile_source = profiles_->source();
        profile_->network = network_profile(speed_, ranks_->size());
        phase("profile", seconds_since(begin),
              fmt::format("{}; tier reads {:.0f} MB/s, writes {:.0f} MB/s", profiles_->source(),
                          profile_->tier.read_bandwidth / 1e6, profile_->tier.write_bandwidth / 1e6));
      }
      return *profile_;
    };
  }

  static std::int64_t advised_mib(const plan::BudgetError& error) {
    return (error.needed_bytes() + kUnsteadyBytes) / kMiB + 1;
  }

  /// Says what would work instead: a larger budget, or the largest batch that this one can train.
  [[noreturn]] void refuse(const plan::BudgetError& error, std::int64_t budget) {
    const std::int64_t smallest = advised_mib(error);
    const std::int64_t batch = largest_batch(budget);
    throw UserError(fmt::format(
        "{} batch {} cannot {} within {}: policy {} needs at least {}; name --memory {}MiB or more, or {}",
        network_.name, options_.batch, training_ ? "train" : "run", format_bytes(budget), error.policy(),
        format_bytes(error.needed_bytes()), smallest,
        batch > 0 ? fmt::format("--batch {} or less", batch) : "a smaller network: not even --batch 1 fits"));
  }

  /// Leaves no program behind that can be used.
  bool batch_fits(std::int64_t batch, std::int64_t budget) {
    program_ = {};
    models::ModelOptions model = model_;
    model.batch = batch;
    try {
      program_ = make_program(network_, model, training_ ? &optimizer_ : nullptr, evaluating_,
                              exchange_options(options_, *ranks_), dynamic_kernels());
      return fits_memory(program_, options_, budget - kUnsteadyBytes, overhead(batch));
    } catch (const UserError&) {
      return false;
    }
  }

  /// The largest batch from `low`, which fits, up to below `high`, which does not.
  std::int64_t largest_batch_between(std::int64_t low, std::int64_t high, std::int64_t budget) {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (batch_fits(middle, budget) ? low : high) = middle;
    }
    return low;
  }

  /// The largest batch below the one asked for that fits the budget; 0 if none does.
  std::int64_t largest_batch(std::int64_t budget) { return largest_batch_between(0, options_.batch, budget); }

  /// The largest that fits, also above the one asked for.
  std::int64_t largest_batch_from(std::int64_t budget) {
    std::int64_t low = options_.batch;
    if (!batch_fits(low, budget)) return largest_batch(budget);
    while (low < kLargestBatch && batch_fits(2 * low, budget)) low *= 2;
    return largest_batch_between(low, 2 * low, budget);
  }

  Overhead overhead(std::int64_t batch) const {
    return {
        {"program", program_bytes_ > 0 ? program_bytes_ : process_memory().resident_bytes},
        {"loader", Loader::memory_bytes(*data_.train, batch)},
        {"conversion", StateIo::conversion_bytes(program_.state_graph()) + StateIo::shard_bytes(program_)},
        {"ranks", ranks_->communicator().growth_bytes()},
        {"margin", kMarginBytes}};
  }

  void describe() {
    const MemoryPlan& plan = engine_->memory_plan();
    result_.policy = plan.policy;
    result_.tier = engine_->tier_description();
    result_.pool = plan.packed ? "packed" : "virtual";
    result_.budget_bytes = plan.budget_bytes;
    result_.pool_bytes = plan.capacity_bytes;
    result_.overhead_bytes = plan.overhead_bytes();
    result_.planned_peak_bytes = plan.planned_peak_bytes;
    result_.in_memory_bytes = plan.in_memory_bytes;
    result_.plan_seconds = plan.plan_seconds;
    result_.predicted_step_seconds = plan.predicted_step_seconds;
    if (plan.profile && plan.training) result_.bound_seconds = bound_seconds(program_, plan, *plan.profile);
    result_.swap_file_bytes = engine_->swap_bytes();
    if (ranks_->size() > 1) {
      note(fmt::format("{} ranks x batch {} = {} images a step, {} threads each", ranks_->size(),
                       options_.batch, whole_batch(), result_.threads));
    }
    if (plan.policy != "keep") {
      note(fmt::format("{} batch {} needs {} in memory; training within {} with policy {}, swapping to {}",
                       network_.name, options_.batch, format_bytes(plan.in_memory_bytes),
                       format_bytes(plan.budget_bytes), plan.policy, result_.tier));
    }
  }

  void fill_state() {
    const auto begin = Clock::now();
    state_->initialise(seed_);
    if (!options_.init_file.empty()) load_weights(options_.init_file, *state_);
    if (!options_.resume_dir.empty()) read_checkpoint(options_.resume_dir, *state_, training_);
    std::int64_t bytes = 0;
    for (const StateEntry& entry : state_->entries()) bytes += entry.size_bytes();
    phase("fill", seconds_since(begin),
          fmt::format("{} of state in {} tensors", format_bytes(bytes), state_->entries().size()));
  }

  void train_steps() {
    const auto started = Clock::now();
    Loader loader(*data_.train, sampler(), position_, std::max<std::int64_t>(0, steps_ - first_step_));
    kernels::StepContext context;
    context.seed = seed_;
    context.first_sample = ranks_->rank() * options_.batch;
    context.exchanger = &exchanger_;
    context.feed = [&](float* images, std::int32_t* labels) { loader.next(images, labels); };
    std::vector<double> stalls, recomputes, computes;
    run::Trace events;
    events.looks_at_transfers = recorder_.wanted();
    engine_->set_trace(&events);
    Pace pace(program_, *engine_);
    const dist::ExchangeStats before = ranks_->communicator().stats();
    SlowWatch watch(program_, *engine_, result_.threads);
    for (std::int64_t step = first_step_; step < steps_; ++step) {
      const std::int64_t epoch = loader.position().epoch;
      context.step = static_cast<std::uint64_t>(step);
      context.learning_rate = schedule_.at(step);
      const auto begin = Clock::now();
      const run::StepStats stats = engine_->train_step(context);
      const double loss =
          mean_over_ranks(*ranks_, engine_->executor().result_f32(program_.training->graph.loss));
      result_.step_seconds.push_back(seconds_since(begin));
      result_.loss.push_back(loss);
      result_.swapped_out_bytes = stats.swapped_out_bytes;
      result_.swapped_in_bytes = stats.swapped_in_bytes;
      stalls.push_back(stats.stall_seconds);
      recomputes.push_back(stats.recompute_seconds);
      computes.push_back(stats.compute_seconds);
      tell(step + 1, epoch, stats);
      recorder_.after_step(step + 1, events, *engine_->memory_plan().training);
      if (const auto why = watch.after_step(stats)) note(*why);
      if (step + 1 < steps_) {
        if (const auto line = pace.after_step(stats, events)) note(*line);
      }
      events.events.clear();
      if (!std::isfinite(loss)) {
        ranks_->fail_together(
            fmt::format("the loss is {} at step {}; a smaller --lr or a --schedule with warmup may help",
                        loss, step + 1));
      }
      const bool last = step + 1 == steps_;
      if (!options_.checkpoint_dir.empty() &&
          (last || (options_.checkpoint_every > 0 && (step + 1) % options_.checkpoint_every == 0))) {
        save_checkpoint(step + 1, loader.position());
      }
    }
    note_exchanges(before);
    engine_->set_trace(nullptr);
    if (const std::string why = watch.whole_run(); !why.empty()) {
      note("on average " + why);
      recorder_.add_note("On average " + why + ".");
    }
    phase("train", seconds_since(started),
          fmt::format("{} steps, {} images", result_.step_seconds.size(),
                      static_cast<std::int64_t>(result_.step_seconds.size()) * whole_batch()));
    keep_seen(pace);
    result_.stall_seconds = upper_median(stalls);
    result_.recompute_seconds = upper_median(recomputes);
    result_.compute_seconds = upper_median(computes);
    result_.replans = pace.replans();
    result_.predicted_step_seconds = engine_->memory_plan().predicted_step_seconds;
    result_.skipped_images = loader.skipped_count();
    const std::vector<std::string> skipped = loader.skipped();
    for (std::size_t i = 0; i < std::min<std::size_t>(5, skipped.size()); ++i) note("skipped: " + skipped[i]);
  }

  /// For the next run. All in memory, nothing was measured; but what is known from earlier can be bettered.
  void keep_seen(const Pace& pace) {
    if (!profiles_) return;
    std::optional<plan::Profile> before = engine_->memory_plan().profile;
    plan::Profile found;
    if (!before && profiles_->find(found)) before = std::move(found);
    if (!before) return;
    if (const auto seen = pace.seen_profile(*before)) profiles_->put(*seen);
  }

  void save_checkpoint(std::int64_t steps_done, const DataPosition& position) {
    if (ranks_->rank() != 0) return state_->lend_shards();
    write_checkpoint(
        options_.checkpoint_dir,
        {network_.name, options_.optimizer, options_.data, whole_batch(), steps_done, position, seed_},
        *state_);
  }

  void note_exchanges(const dist::ExchangeStats& before) {
    const dist::ExchangeStats stats = ranks_->communicator().stats();
    const std::int64_t steps = std::max<std::int64_t>(1, steps_ - first_step_);
    result_.network_bytes = (stats.sent_bytes - before.sent_bytes) / steps;
    result_.reduce_seconds = (stats.busy_seconds - before.busy_seconds) / static_cast<double>(steps);
    result_.reduce_wait_seconds = (stats.wait_seconds - before.wait_seconds) / static_cast<double>(steps);
    result_.network_bandwidth = speed_.bandwidth;
    result_.network_latency_seconds = speed_.latency_seconds;
  }

  void tell(std::int64_t done, std::int64_t epoch, const run::StepStats& stats) {
    if (!options_.on_step || ranks_->rank() != 0) return;
    Progress progress;
    progress.step = done;
    progress.steps = steps_;
    progress.epoch = epoch;
    progress.loss = result_.loss.back();
    progress.step_seconds = result_.step_seconds.back();
    const std::size_t recent = std::min<std::size_t>(result_.step_seconds.size(), 10);
    const double typical = upper_median(
        {result_.step_seconds.end() - static_cast<std::ptrdiff_t>(recent), result_.step_seconds.end()});
    progress.images_per_second = static_cast<double>(whole_batch()) / typical;
    progress.learning_rate = schedule_.at(done - 1);
    progress.seconds_left = typical * static_cast<double>(steps_ - done);
    progress.compute_seconds = stats.compute_seconds;
    progress.recompute_seconds = stats.recompute_seconds;
    progress.stall_seconds = stats.stall_seconds;
    progress.stall_share = stats.stall_seconds / progress.step_seconds;
    progress.swapped_out_bytes = stats.swapped_out_bytes;
    progress.swapped_in_bytes = stats.swapped_in_bytes;
    progress.pool_peak_bytes = stats.peak_pool_bytes;
    progress.memory_bytes = process_memory().resident_bytes;
    progress.budget_bytes = options_.memory.empty() && options_.plan_file.empty() ? 0 : result_.budget_bytes;
    options_.on_step(progress);
  }

  void evaluate_split() {
    const auto started = Clock::now();
    take_statistics_of_rank_0(*ranks_, *state_);
    SamplerOptions options;
    options.rank = ranks_->rank();
    options.ranks = ranks_->size();
    options.samples = data_.test->size();
    options.batch = options_.batch;
    options.shuffle = false;
    options.last_batch = LastBatch::fill;
    options.data_name = data_.test->name();
    const Sampler order(options);
    const std::int64_t batches = order.batches_per_epoch();
    Loader loader(*data_.test, order, {}, batches);
    const std::int64_t labels_per_image = data_.test->geometry().label_values();
    kernels::StepContext context;
    context.seed = seed_;
    std::int64_t correct = 0;
    std::vector<double> seconds;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      context.feed = [&](float* images, std::int32_t* labels) {
        loader.next(images, labels);
        // No answer is right for the images that only fill up the last batch.
        std::fill(labels + order.valid_samples(batch) * labels_per_image,
                  labels + options_.batch * labels_per_image, -1);
      };
      const auto begin = Clock::now();
      engine_->evaluate_step(context);
      correct += engine_->executor().result_s32(program_.evaluation->graph.correct);
      seconds.push_back(seconds_since(begin));
    }
    correct = sum_over_ranks(*ranks_, correct);
    result_.test_images = data_.test->size();
    result_.accuracy =
        static_cast<double>(correct) / static_cast<double>(data_.test->size() * labels_per_image);
    if (!training_) result_.images_per_second = static_cast<double>(whole_batch()) / upper_median(seconds);
    phase("evaluate", seconds_since(started),
          fmt::format("{} images, accuracy {:.2f} %", result_.test_images, 100 * result_.accuracy));
  }

  void finish() {
    if (!options_.save_file.empty() && ranks_->rank() == 0) save_weights(options_.save_file, *state_);
    result_.weights_sha256 = state_->sha256();
    result_.model = network_.name;
    result_.batch = options_.batch;
    result_.steps = steps_;
    result_.seed = seed_;
    result_.pool_peak_bytes = engine_->pool().peak_bytes();
    result_.fragmentation_bytes = engine_->pool().peak_lost_bytes();
    result_.peak_by_tag = engine_->budget().peak_breakdown();
    result_.peak_rss_bytes = std::max(earlier_peak_bytes_, process_memory().peak_resident_bytes);
    result_.ranks = ranks_->size();
    result_.effective_batch = whole_batch();
    result_.rank_peak_rss_bytes = of_all_ranks(*ranks_, result_.peak_rss_bytes);
    if (training_ && !result_.step_seconds.empty()) {
      std::vector<double> later(result_.step_seconds.begin() + (result_.step_seconds.size() > 1 ? 1 : 0),
                                result_.step_seconds.end());
      result_.images_per_second = static_cast<double>(whole_batch()) / upper_median(std::move(later));
    }
  }

  /// Writes trace and report in the memory that the pool gives back.
  void record() {
    if (!recorder_.wanted()) return;
    const MemoryPlan plan = engine_->memory_plan();
    state_.reset();
    engine_.reset();
    recorder_.write(program_, plan, result_);
  }

  const Network& network_;
  const Options& options_;
  const bool planning_;
  const bool training_;
  const bool evaluating_;
  const std::shared_ptr<Ranks> ranks_;
  RankExchanger exchanger_;
  dist::NetworkSpeed speed_;
  std::int64_t available_bytes_ = 0;
  Recorder recorder_;
  Clock::time_point begin_;
  OptimizerOptions optimizer_;
  models::ModelOptions model_;
  DataSplits data_;
  std::uint64_t seed_ = 0;
  std::int64_t first_step_ = 0;
  std::int64_t steps_ = 0;
  DataPosition position_;
  Schedule schedule_;
  Program program_;
  std::unique_ptr<ProfileStore> profiles_;
  std::optional<plan::Profile> profile_;
  std::int64_t earlier_peak_bytes_ = 0;
  std::int64_t program_bytes_ = 0;  ///< what the process takes; 0: to be looked up
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

PlanResult plan_training(const Network& network, const Options& options, const PlanRequest& request) {
  return training::Run(network, options, training::Purpose::plan).plan(request);
}

const char* version() {
  return "0.1.0";
}

}  // namespace penstock
