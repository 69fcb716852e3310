#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/bytes.h"
#include "base/kept_json.h"
#include "base/signals.h"
#include "base/text_file.h"
#include "cli/numbers.h"
#include "cli/parse.h"
#include "dist/communicator.h"
#include "memory/process.h"
#include "models/text_catalog.h"
#include "plan/make_plan.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kImageBatch = 32;
constexpr std::int64_t kTextBatch = 4;

}  // namespace

void add_common_options(CLI::App& command, RunOptions& run) {
  TrainingOptions& options = run.options;
  SessionOptions& session = options.session;
  RunWords& words = run.words;
  command
      .add_option("MODEL", run.model.name,
                  "a model of `penstock models`, a file model.onnx, or a config.json")
      ->required();
  command
      .add_option(
          "--data", options.data,
          "fashion-mnist | mnist:DIR | cifar10:DIR | images:DIR | npy:IMAGES,LABELS | synthetic; of text "
          "tokens:FILE[,FILE] | text:FILE[,FILE]")
      ->capture_default_str();
  command.add_option("--image-size", run.model.image_size, "edge of the images (the model's own)")
      ->check(whole_number(1));
  command.add_option("--channels", run.model.channels, "channels of the images (the data's own)")
      ->check(whole_number(1));
  command.add_option("--classes", run.model.classes, "number of classes (the data's own)")
      ->check(whole_number(1));
  command
      .add_option("--sequence", run.model.sequence,
                  "text: tokens of a sample (as many as there are positions)")
      ->check(whole_number(1));
  command.add_option("--vocabulary", run.model.classes, "text: how many tokens there are (the model's own)")
      ->check(whole_number(1));
  command.add_option("--batch", words.batch, "images or sequences per step, of each rank (32, of text 4)")
      ->check(whole_number(1));
  command.add_option("--loss", options.loss, "of model.onnx: cross_entropy | output (the file's own)")
      ->capture_default_str();
  command
      .add_option("--freeze", options.freeze,
                  "do not train the parameters of these names; * stands for any letters")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command.add_option("--seed", session.seed, "of everything random")
      ->capture_default_str()
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  command.add_option("--threads", session.threads, "compute threads (all cores)")
      ->check(whole_number(1, 1024));
  command
      .add_option("--init", options.init_file,
                  "start from this safetensors file, or a folder of the hub with them")
      ->type_name("FILE|DIR");

  auto* memory = command.add_option_group("Memory");
  memory->add_option("--memory", words.memory,
                     "what the whole process may take: 1GiB, 800MiB, 50% (what is free)");
  memory->add_option("--policy", words.policy,
                     "keep | lms | superneurons | pooch | window | auto (keep where it fits, else auto)");
  memory->add_option("--profile", words.profile, "measured times to plan by: cached | fresh | FILE")
      ->capture_default_str();
  memory
      ->add_option("--kernels", words.kernels,
                   "fixed | dynamic (the fastest that fits; the result then depends on the budget)")
      ->capture_default_str();
  memory->add_option("--tier", words.tier, "where tensors are swapped to: disk | disk-threads | ram")
      ->capture_default_str();
  memory->add_option("--swap-dir", session.memory.swap_dir, "folder of the swap file (a temporary one)")
      ->type_name("DIR");
  memory->add_option("--swap-space", words.swap_space,
                     "what the swap file may take: 20GiB (what is free there, less a margin)");
  memory->add_option("--tier-bandwidth", words.tier_bandwidth, "throttle the tier, each way: 200MB/s");
  memory->add_option("--verify", words.verify, "check what comes back: sampled | full | off")
      ->capture_default_str();
  memory->add_option("--pool", words.pool, "auto | virtual | packed")->capture_default_str();
  memory
      ->add_option("--slice", words.slice,
                   "run each step on slices of so many images: then a budget need not hold whole batches; "
                   "0: whole batches; auto: by network, batch and image")
      ->capture_default_str();
  memory
      ->add_option(
          "--bands", words.bands,
          "cut each image into so many bands of rows, too: then a budget need not hold a whole image; "
          "1: whole images; auto: where one image is too wide by itself")
      ->capture_default_str();
  memory
      ->add_option(
          "--repeat-cheap", session.memory.repeat_cheap,
          "make what costs little again in backward, under every policy (off: as policies were published)")
      ->default_str("on")
      ->type_name("on|off");
  memory->add_option("--window", words.window, "bytes that policy window looks ahead (1.5 times the pool)");
  memory
      ->add_option("--lms-threshold", session.memory.lms.threshold,
                   "policy lms: swap what is used this many levels later")
      ->check(whole_number(1));
  memory
      ->add_option("--lms-ahead", session.memory.lms.ahead,
                   "policy lms: start reading this many levels ahead")
      ->check(whole_number(1));
  memory
      ->add_option("--lms-groupby", session.memory.lms.groupby,
                   "policy lms: consumers this close share one read")
      ->check(whole_number(1));

  auto* ranks = command.add_option_group("Ranks (mpirun -n N penstock ...)");
  ranks->add_flag("--shard-optimizer", session.ranks.shard_optimizer,
                  "each rank keeps a part of the optimizer's state");
  ranks->add_option("--bucket", words.bucket, "gradients travel together up to this size (8MiB)");
  ranks->add_option("--in-flight", words.in_flight,
                    "gradients that may be on their way at a time (32MiB with --memory, else 1GiB)");

  command.add_option("--json", run.json_file, "write the result to this file")->type_name("FILE");
  auto* quiet = command.add_flag("--quiet", run.quiet, "print nothing but errors");
  command.add_flag("--verbose", run.verbose, "a line for each part of the run and each step")
      ->excludes(quiet);
}

void add_optimizer_options(CLI::App& command, RunOptions& run) {
  Optimizer& optimizer = run.options.optimizer;
  auto* rule = command.add_option_group("Optimizer");
  rule->add_option("--optimizer", run.words.optimizer, "sgd | adam | adamw")->capture_default_str();
  rule->add_option("--lr", optimizer.learning_rate, "learning rate (sgd 0.1, adam and adamw 0.001)")
      ->check(number_above_zero());
  rule->add_option("--momentum", optimizer.momentum, "of sgd")->capture_default_str()->check(share());
  rule->add_flag("--nesterov", optimizer.nesterov, "Nesterov's momentum");
  rule->add_option("--weight-decay", optimizer.weight_decay, "decay of the weights")
      ->capture_default_str()
      ->check(number_from_zero());
  rule->add_option("--decay", run.words.decay,
                   "what the weights' decay is for: all | matrices (parameters of two axes and more: neither "
                   "biases nor norms)")
      ->capture_default_str();
  rule->add_option("--betas", run.words.betas, "of adam and adamw: B1,B2 (0.9,0.999)");
  rule->add_option("--clip", optimizer.clip_norm,
                   "scale gradients down to this norm, taken over all of them (0: do not)")
      ->capture_default_str()
      ->check(number_from_zero());
  rule->add_option("--accumulate", run.options.session.accumulate,
                   "micro-batches a step: the batch in so many parts, whose gradients are added up")
      ->capture_default_str()
      ->check(whole_number(1));
  rule->add_option("--state-dtype", run.words.state_dtype,
                   "keep the moments of adam and adamw as f32 | bf16 (rounded by chance, half of the memory)")
      ->capture_default_str();
  rule->add_option("--schedule", run.words.schedule,
                   "constant | step:EVERY[,FACTOR] | cosine; ,warmup:N may follow")
      ->capture_default_str();
}

void read_words(RunOptions& run) {
  const RunWords& words = run.words;
  TrainingOptions& options = run.options;
  MemoryOptions& memory = options.session.memory;
  RankOptions& ranks = options.session.ranks;
  options.batch = words.batch > 0                         ? words.batch
                  : models::is_text_model(run.model.name) ? kTextBatch
                                                          : kImageBatch;
  if (!words.memory.empty()) {
    const int share = ranks.ranks ? ranks.ranks->communicator().local_size() : 1;
    memory.budget_bytes = parse_memory_budget(words.memory, available_memory_bytes() / share);
  }
  if (!words.policy.empty()) memory.policy = plan::parse_policy(words.policy);
  memory.pool = parse_pool(words.pool);
  memory.dynamic_kernels = parse_dynamic_kernels(words.kernels);
  memory.tier = parse_tier(words.tier);
  memory.verify = parse_verify(words.verify);
  if (!words.tier_bandwidth.empty()) memory.tier_bytes_per_second = parse_bandwidth(words.tier_bandwidth);
  memory.slice_samples = parse_slice(words.slice);
  memory.bands = parse_bands(words.bands);
  if (!words.swap_space.empty()) memory.swap_space_bytes = parse_bytes(words.swap_space, "--swap-space");
  if (!words.window.empty()) memory.window_bytes = parse_bytes(words.window, "--window");
  if (words.profile == "fresh") {
    memory.profile = ProfileSource::fresh;
  } else if (words.profile != "cached") {
    memory.profile = ProfileSource::file;
    memory.profile_file = words.profile;
  }
  if (!words.bucket.empty()) ranks.bucket_bytes = parse_bytes(words.bucket, "--bucket");
  if (!words.in_flight.empty()) ranks.in_flight_bytes = parse_bytes(words.in_flight, "--in-flight");
  options.optimizer.kind = parse_optimizer(words.optimizer);
  if (options.optimizer.kind != OptimizerKind::sgd) options.optimizer.momentum = 0;
  options.schedule = parse_schedule(words.schedule);
  options.optimizer.decay_matrices_only = parse_decay(words.decay);
  options.optimizer.moments = parse_moments(words.state_dtype);
  if (!words.betas.empty())
    std::tie(options.optimizer.beta1, options.optimizer.beta2) = parse_betas(words.betas);
}

Detail detail_of(const RunOptions& run) {
  return run.quiet ? Detail::quiet : run.verbose ? Detail::verbose : Detail::normal;
}

void join(RunOptions& run) {
  run.options.session.ranks.ranks = join_ranks();
  Ranks& ranks = *run.options.session.ranks.ranks;
  run.quiet |= ranks.rank() != 0;
  run.options.on_rank_failure = [&ranks](const std::string& message, int exit_code) {
    say(stderr, fmt::format("penstock: {}\n", message));
    ranks.abort(exit_code);
  };
  ranks.together([&] {
    read_words(run);
    if (!run.json_file.empty() && ranks.rank() == 0) check_writable(run.json_file, "--json");
  });
}

void write_result(const RunOptions& run, const TrainingResult& result) {
  if (run.json_file.empty() || run.options.session.ranks.ranks->rank() != 0) return;
  write_file(run.json_file, result_json(result));
}

std::string validation_text(const TrainingResult& result) {
  return fmt::format("validation: loss {:.4f}, perplexity {:.2f} on {} tokens", result.validation_loss,
                     std::exp(result.validation_loss), result.test_samples * result.sequence);
}

std::string result_json(const TrainingResult& result) {
  constexpr std::size_t kKeys = 96;  // More than there are below.
  KeptJson kept(nlohmann::ordered_json::object());
  nlohmann::ordered_json& json = *kept;
  json.get_ref<nlohmann::ordered_json::object_t&>().reserve(kKeys);
  json["model"] = result.model;
  json["batch"] = result.batch;
  json["steps"] = result.steps;
  json["threads"] = result.threads;
  json["seed"] = result.seed;
  json["loss"] = result.loss;
  if (!result.gradient_norm.empty()) json["gradient_norm"] = result.gradient_norm;
  json["step_seconds"] = result.step_seconds;
  if (result.kept_every > 1) json["kept_every"] = result.kept_every;
  json["images_per_second"] = result.samples_per_second;
  if (result.sequence > 0) {
    json["sequence"] = result.sequence;
    json["tokens_per_second"] = result.samples_per_second * static_cast<double>(result.sequence);
  }
  json["startup_seconds"] = result.startup_seconds;
  json["peak_rss_bytes"] = result.peak_rss_bytes;
  json["weights_sha256"] = result.weights_sha256;
  if (result.accuracy >= 0) {
    json["accuracy"] = result.accuracy;
    json["test_images"] = result.test_samples;
  }
  if (result.validation_loss >= 0) {
    json["validation_loss"] = result.validation_loss;
    json["perplexity"] = std::exp(result.validation_loss);
    json["validation_tokens"] = result.test_samples * result.sequence;
  }
  if (result.stopped) json["stopped"] = true;
  json["skipped_images"] = result.skipped_samples;
  json["policy"] = result.plan.policy;
  json["tier"] = result.tier;
  json["pool"] = result.plan.pool;
  json["budget_bytes"] = result.plan.budget_bytes;
  json["pool_bytes"] = result.plan.pool_bytes;
  json["overhead_bytes"] = result.plan.overhead_bytes();
  json["planned_peak_bytes"] = result.plan.pool_bytes;
  json["pool_peak_bytes"] = result.pool_peak_bytes;
  json["in_memory_bytes"] = result.plan.in_memory_bytes;
  json["fragmentation_bytes"] = result.fragmentation_bytes;
  json["peak_by_tag"] = result.peak_by_tag;
  json["swapped_out_bytes"] = result.typical.swapped_out_bytes;
  json["swapped_in_bytes"] = result.typical.swapped_in_bytes;
  json["compute_seconds"] = result.typical.compute_seconds;
  json["recompute_seconds"] = result.typical.recompute_seconds;
  json["stall_seconds"] = result.typical.stall_seconds;
  json["predicted_step_seconds"] = result.plan.step.step_seconds;
  json["bound_seconds"] = result.plan.bound_seconds;
  json["profile_source"] = result.plan.profile_source;
  json["replans"] = result.replans;
  json["plan_seconds"] = result.plan.plan_seconds;
  json["swap_file_bytes"] = result.plan.swap_file_bytes;
  json["ranks"] = result.ranks;
  json["effective_batch"] = result.effective_batch;
  json["rank_peak_rss_bytes"] = result.rank_peak_rss_bytes;
  if (result.ranks > 1) {
    json["network_bytes"] = result.sent_bytes;
    json["network_bandwidth"] = result.plan.link_bandwidth;
    json["network_latency_seconds"] = result.plan.link_latency_seconds;
    json["reduce_seconds"] = result.reduce_seconds;
    json["reduce_wait_seconds"] = result.reduce_wait_seconds;
    json["reduce_hidden_share"] = result.reduce_seconds > 0
                                      ? std::max(0.0, 1 - result.reduce_wait_seconds / result.reduce_seconds)
                                      : 0.0;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace penstock::cli
