#include "training/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/text_file.h"
#include "data/checkpoint_file.h"
#include "data/loader.h"
#include "dist/communicator.h"

namespace penstock::training {
namespace {

ModelInfo info_of(const ModelChoice& model) {
  if (!model.make) return find_model(model.name);
  ModelInfo info;
  info.name = model.name;
  info.channels = model.channels;
  info.image_size = model.image_size;
  info.classes = model.classes;
  return info;
}

const char* name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::adamw:
      return "adamw";
  }
  return "?";
}

std::int64_t number(const std::map<std::string, std::string>& facts, const char* key,
                    const std::string& dir) {
  const auto found = facts.find(key);
  std::int64_t value = 0;
  if (found != facts.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  throw UserError(fmt::format(
      "the checkpoint in '{}' does not say its {}: it was not made by a training loop", dir, key));
}

}  // namespace

Job::Job(const ModelChoice& of_model, const TrainingOptions& by_options, Purpose for_purpose)
    : model(of_model),
      options(by_options),
      purpose(for_purpose),
      training(for_purpose != Purpose::evaluate),
      evaluating(for_purpose == Purpose::evaluate || by_options.evaluate),
      ranks(by_options.session.ranks.ranks ? by_options.session.ranks.ranks
                                           : std::make_shared<Ranks>(dist::make_alone())) {}

void Job::set_up() {
  if (!model.make) text = models::find_text_info(model.name);
  check_options();
  open();
  seed = options.session.seed;
  if (purpose != Purpose::plan) resume();
}

void Job::note(const std::string& line) const {
  if (options.session.on_note && ranks->rank() == 0) options.session.on_note(line);
}

void Job::phase(const char* name, double seconds, const std::string& detail) const {
  if (options.session.on_phase && ranks->rank() == 0) options.session.on_phase({name, seconds, detail});
}

Network Job::network(std::int64_t samples) const {
  ModelOptions of_batch = sizes;
  of_batch.batch = samples;
  Network network = file         ? file->network(samples)
                    : is_text()  ? models::build_text_model(model.name, {samples, sequence, sizes.classes})
                    : model.make ? model.make(of_batch)
                                 : Network::model(model.name, of_batch);
  for (const std::string& pattern : options.freeze) network = network.freeze(pattern);
  return network;
}

SessionOptions Job::session_options() const {
  SessionOptions session = options.session;
  session.ranks.ranks = ranks;
  session.seed = seed;
  session.training = training;
  session.evaluation = evaluating;
  session.record = ranks->rank() == 0 && (!options.trace_file.empty() || !options.report_file.empty());
  session.reserved_bytes["loader"] = is_text()
                                         ? token_feed_bytes(options.batch, sequence)
                                         : Loader::memory_bytes(*data.train, options.batch, read_ahead());
  return session;
}

std::int64_t Job::read_ahead() const {
  // Micro-batches take their parts of an input that comes whole.
  if (options.session.accumulate > 1) return 0;
  return slice_samples(network(options.batch), options.session.memory);
}

Sampler Job::sampler() const {
  SamplerOptions order;
  order.rank = ranks->rank();
  order.ranks = ranks->size();
  order.samples = is_text() ? tokens.train->size() : data.train->size();
  order.batch = options.batch;
  order.seed = seed;
  order.shuffle = options.shuffle;
  order.data_name = is_text() ? tokens.train->name() : data.train->name();
  return Sampler(order);
}

std::unique_ptr<Feed> Job::training_feed() const {
  if (is_text()) return feed_tokens(*tokens.train, sampler(), position);
  return feed_images(*data.train, sampler(), position, std::max<std::int64_t>(0, steps - first_step), inputs,
                     read_ahead());
}

std::int64_t Job::evaluation_samples() const {
  return is_text() ? tokens.validation->size() : data.test->size();
}

Sampler Job::evaluation_sampler() const {
  SamplerOptions order;
  order.rank = ranks->rank();
  order.ranks = ranks->size();
  order.samples = evaluation_samples();
  order.batch = micro_batch();
  order.shuffle = false;
  order.last_batch = LastBatch::fill;
  order.data_name = is_text() ? tokens.validation->name() : data.test->name();
  return Sampler(order);
}

std::unique_ptr<Feed> Job::evaluation_feed() const {
  const Sampler order = evaluation_sampler();
  if (is_text()) return feed_tokens(*tokens.validation, order, {});
  return feed_images(*data.test, order, {}, order.batches_per_epoch(), inputs, read_ahead());
}

std::map<std::string, std::string> Job::facts(const DataPosition& next) const {
  std::map<std::string, std::string> facts{
      {"model", to_utf8(model.name)},
      {"optimizer", name_of(options.optimizer.kind)},
      {"data", to_utf8(options.data)},
      {"batch", std::to_string(whole_batch())},
      {"epoch", std::to_string(next.epoch)},
      {"position", std::to_string(next.batch)},
      {"shuffle", options.shuffle ? "on" : "off"},
      {"image_size", std::to_string(sizes.image_size)},
      {"learning_rate", fmt::format("{}", options.optimizer.learning_rate)},
      {"schedule", fmt::format("{} every {} by {}, warm-up {}", static_cast<int>(options.schedule.kind),
                               options.schedule.every, options.schedule.factor, options.schedule.warmup)}};
  if (is_text()) {
    facts.erase("image_size");
    facts["sequence"] = std::to_string(sequence);
  }
  facts["micro-batches"] = std::to_string(options.session.accumulate);
  facts["clipping norm"] = fmt::format("{}", options.optimizer.clip_norm);
  facts["moments"] = options.optimizer.moments == MomentType::bf16 ? "bf16" : "f32";
  return facts;
}

std::map<std::string, std::string> Job::start() const {
  std::map<std::string, std::string> all = facts(position);
  // Where the data lies may differ from machine to machine; what it is may not.
  all["data"] = fmt::format("{} samples", sampler().options().samples);
  all["batch"] = std::to_string(options.batch);
  all["seed"] = std::to_string(seed);
  all["step"] = std::to_string(first_step);
  all["number of steps"] = std::to_string(steps);
  all["setting of evaluation"] = evaluating ? "on" : "off";
  all["setting of sharding"] = options.session.ranks.shard_optimizer ? "on" : "off";
  all["optimizer"] =
      fmt::format("{} ({} {} {} {} {}{})", name_of(options.optimizer.kind), options.optimizer.momentum,
                  options.optimizer.weight_decay, options.optimizer.beta1, options.optimizer.beta2,
                  options.optimizer.epsilon, options.optimizer.decay_matrices_only ? " matrices" : "");
  return all;
}

void Job::check_options() const {
  const std::int64_t micro_batches = options.session.accumulate;
  if (micro_batches < 1)
    throw UserError(fmt::format("{} micro-batches a step are none; use 1 or more", micro_batches));
  if (options.batch > 0 && options.batch % micro_batches != 0) {
    throw UserError(fmt::format(
        "a batch of {} does not divide into {} micro-batches of the same size; use a multiple, {} say",
        options.batch, micro_batches, (options.batch / micro_batches + 1) * micro_batches));
  }
  if (options.batch < 1) throw UserError(fmt::format("a batch of {}: it must be at least 1", options.batch));
  if (purpose == Purpose::train && (options.steps < 1) == (options.epochs < 1))
    throw UserError("say how long to train: a number of steps or of epochs, one of them");
  if (ranks->rank() == 0 && purpose != Purpose::plan) check_outputs();
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty())
    throw UserError("a checkpoint every so many steps needs a folder for it");
  if (!options.init_file.empty() && !options.resume_dir.empty()) {
    throw UserError(
        "initial weights and a checkpoint to resume exclude each other: one says where to start, the other "
        "where "
        "to go on");
  }
  if (!is_file() && options.loss != "cross_entropy")
    throw UserError(fmt::format("the loss of {} is cross_entropy, not {}", model.name, options.loss));
  if (!is_file() && onnx::is_onnx_path(options.save_file))
    throw UserError(fmt::format("{} is no ONNX file, so its weights cannot be written to one", model.name));
  if (!training && !is_file() && options.init_file.empty() && options.resume_dir.empty())
    throw UserError("say which weights to evaluate: a file of weights or a checkpoint");
}

bool Job::is_file() const {
  return !model.make && onnx::is_onnx_path(model.name);
}

bool Job::saves_folder() const {
  return is_text() && is_folder(options.save_file);
}

void Job::check_outputs() const {
  if (saves_folder()) {
    check_writable_folder(options.save_file, "weights");
  } else if (!options.save_file.empty()) {
    check_writable(options.save_file, "weights");
  }
  if (!options.checkpoint_dir.empty()) check_writable_folder(options.checkpoint_dir, "checkpoint");
  if (!options.trace_file.empty()) check_writable(options.trace_file, "trace");
  if (!options.report_file.empty()) check_writable(options.report_file, "report");
}

void Job::open() {
  if (is_text()) {
    open_text();
  } else {
    if (is_file()) open_file();
    open_images();
  }
}

void Job::open_file() {
  file = std::make_unique<OnnxFile>(model, options);
  if (onnx::is_onnx_path(options.save_file)) onnx::check_save(model.name, options.save_file);
  inputs = {file->images(), file->labels()};
  if (evaluating && file->info().classes == 0) {
    throw UserError(
        fmt::format("{} has its own loss and no logits, so its accuracy is not known", model.name));
  }
}

void Job::open_text() {
  if (model.image_size > 0 || model.channels > 0)
    throw UserError(fmt::format("{} takes text: it has neither channels nor an image size", model.name));
  sizes.batch = options.batch;
  sequence = model.sequence > 0 ? model.sequence : text->positions;
  sizes.classes = model.classes > 0 ? model.classes : text->vocabulary;
  if (sequence > text->positions) {
    throw UserError(fmt::format("{} takes sequences of 1 to {} tokens, not {}: it has no more positions",
                                model.name, text->positions, sequence));
  }
  TokenRequest request;
  request.source = options.data;
  request.sequence = sequence;
  request.vocabulary = sizes.classes;
  request.seed = options.session.seed;
  tokens = open_tokens(request);
}

void Job::open_images() {
  if (is_token_source(options.data)) {
    throw UserError(
        fmt::format("{} is a network for images, {} is text", model.name, printable(options.data)));
  }
  if (model.sequence > 0)
    throw UserError(fmt::format("{} is a network for images, it has no sequence", model.name));
  const ModelInfo info = file ? file->info() : info_of(model);
  DataRequest request;
  request.source = options.data;
  request.seed = options.session.seed;
  request.per_pixel_labels = info.per_pixel;
  request.volumetric = info.volumetric;
  const bool own_size = !file && options.data != "synthetic" && !options.data.starts_with("images:");
  request.channels = model.channels > 0 ? model.channels : own_size ? 0 : info.channels;
  request.image_size = model.image_size > 0 ? model.image_size : own_size ? 0 : info.image_size;
  request.classes = model.classes > 0 ? model.classes : options.data == "synthetic" ? info.classes : 0;
  // What has to be in memory as a whole is part of the budget.
  if (const std::int64_t budget_bytes = options.session.memory.budget_bytes; budget_bytes > 0) {
    request.resident_limit_bytes = std::min(request.resident_limit_bytes, budget_bytes);
  }
  data = open_data(request);
  for (const std::string& warning : data.warnings) note(warning);
  const DataGeometry& geometry = data.train->geometry();
  if (geometry.height != geometry.width || (info.volumetric && geometry.depth != geometry.height)) {
    throw UserError(fmt::format("{}: images of {} x {} are not square; name an image size",
                                data.train->name(), geometry.height, geometry.width));
  }
  sizes.batch = options.batch;
  sizes.channels = geometry.channels;
  sizes.image_size = geometry.height;
  sizes.classes = geometry.classes;
  if (file) check_fits();
}

void Job::check_fits() const {
  const ModelInfo& info = file->info();
  if (sizes.channels != info.channels || sizes.image_size != info.image_size) {
    throw UserError(fmt::format("{} takes images of {} x {} x {}, and {} has {} x {} x {}", model.name,
                                info.channels, info.image_size, info.image_size, data.train->name(),
                                sizes.channels, sizes.image_size, sizes.image_size));
  }
  if (info.classes > 0 && sizes.classes > info.classes) {
    throw UserError(fmt::format("{} tells {} classes apart, and {} has {}", model.name, info.classes,
                                data.train->name(), sizes.classes));
  }
}

void Job::resume() {
  if (!options.resume_dir.empty()) {
    const std::string& dir = options.resume_dir;
    const CheckpointFacts found = checkpoint_facts(dir);
    const auto fact = [&found](const char* key) {
      const auto at = found.facts.find(key);
      return at == found.facts.end() ? std::string() : at->second;
    };
    if (fact("model") != to_utf8(model.name))
      throw UserError(
          fmt::format("the checkpoint in '{}' is of {}, not of {}", dir, fact("model"), model.name));
    if (training) {
      if (fact("optimizer") != name_of(options.optimizer.kind) || fact("data") != to_utf8(options.data)) {
        throw UserError(
            fmt::format("the checkpoint in '{}' was made with optimizer {} and data {}; resume with the same",
                        dir, fact("optimizer"), fact("data")));
      }
      const std::int64_t batch = number(found.facts, "batch", dir);
      if (batch != whole_batch()) {
        throw UserError(
            ranks->size() == 1
                ? fmt::format("the checkpoint in '{}' was made with a batch of {}, not {}; resume with "
                              "the same",
                              dir, batch, options.batch)
                : fmt::format("the checkpoint in '{}' was made with a batch of {} in all; resume with a "
                              "batch and ranks that make the same, not {} x {}",
                              dir, batch, options.batch, ranks->size()));
      }
      if (is_text() && number(found.facts, "sequence", dir) != sequence) {
        throw UserError(fmt::format(
            "the checkpoint in '{}' was made with sequences of {} tokens, not {}; resume with the same", dir,
            fact("sequence"), sequence));
      }
      std::map<std::string, std::string> now = facts({});
      now.erase("epoch");
      now.erase("position");
      for (const std::string& line : changed_facts(found.facts, now))
        note("since the checkpoint was made, " + line);
      if (found.seed != seed) note(fmt::format("going on with the checkpoint's seed {}", found.seed));
      seed = found.seed;
      first_step = found.step;
      position = {number(found.facts, "epoch", dir), number(found.facts, "position", dir)};
    }
  }
  if (!training) return;
  const std::int64_t per_epoch = sampler().batches_per_epoch();
  steps = options.steps > 0 ? options.steps : options.epochs * per_epoch;
  if (first_step > 0) note(fmt::format("resuming after step {} of {}", first_step, steps));
}

}  // namespace penstock::training
