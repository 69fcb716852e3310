#include "train/job.h"

#include <fmt/format.h>
#include <malloc.h>
#include <omp.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text_file.h"
#include "memory/process.h"
#include "run/residency.h"
#include "tier/swap_dir.h"
#include "train/checkpoint.h"
#include "train/network.h"
#include "train/rank_exchange.h"

namespace penstock::training {

Job::Job(const Network& of_network, const Options& by_options, Purpose purpose)
    : network(of_network),
      options(by_options),
      planning(purpose == Purpose::plan),
      training(purpose != Purpose::evaluate),
      evaluating(purpose == Purpose::evaluate || by_options.evaluate),
      ranks(by_options.ranks ? by_options.ranks : std::make_shared<Ranks>(dist::make_alone())) {}

void Job::set_up() {
  check_options();
  set_threads();
  open();
  seed = options.seed;
  if (!planning) resume_info();
}

void Job::note(const std::string& line) const {
  if (options.on_note && ranks->rank() == 0) options.on_note(line);
}

void Job::phase(const char* name, double seconds, const std::string& detail) const {
  if (options.on_phase && ranks->rank() == 0) options.on_phase({name, seconds, detail});
}

Sampler Job::sampler() const {
  SamplerOptions order;
  order.rank = ranks->rank();
  order.ranks = ranks->size();
  order.samples = data.train->size();
  order.batch = options.batch;
  order.seed = seed;
  order.shuffle = options.shuffle;
  order.data_name = data.train->name();
  return Sampler(order);
}

void Job::check_options() {
  if (options.batch < 1) throw UserError(fmt::format("--batch {}: it must be at least 1", options.batch));
  if (training && !planning && (options.steps < 1) == (options.epochs < 1)) {
    throw UserError("say how long to train: --steps N or --epochs N, one of them");
  }
  optimizer.kind = parse_optimizer(options.optimizer);
  optimizer.momentum = static_cast<float>(options.momentum);
  optimizer.nesterov = options.nesterov;
  optimizer.weight_decay = static_cast<float>(options.weight_decay);
  check(optimizer);
  if (options.shard_optimizer && ranks->size() == 1) {
    note("--shard-optimizer has nobody to share with: there is one rank");
  }
  if (ranks->rank() == 0) check_outputs();
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty()) {
    throw UserError("--checkpoint-every needs --checkpoint DIR");
  }
  if (!options.swap_dir.empty()) check_swap_dir(options.swap_dir, 0);
  if (!options.init_file.empty() && !options.resume_dir.empty()) {
    throw UserError(
        "--init and --resume exclude each other: one says where to start, the other where to go on");
  }
  if (!training && options.init_file.empty() && options.resume_dir.empty()) {
    throw UserError("say which weights to evaluate: --init FILE or --resume DIR");
  }
}

void Job::check_outputs() const {
  if (!options.save_file.empty()) check_writable(options.save_file, "--save");
  if (!options.checkpoint_dir.empty()) {
    check_writable((std::filesystem::path(options.checkpoint_dir) / "..").lexically_normal() / "checkpoint",
                   "--checkpoint");
  }
}

void Job::set_threads() {
  threads = options.threads > 0 ? options.threads : threads_of_rank(*ranks);
  omp_set_num_threads(threads);
}

void Job::open() {
  const models::ModelInfo info = network_info(network);
  DataRequest request;
  request.source = options.data;
  request.seed = options.seed;
  request.per_pixel_labels = info.per_pixel;
  request.volumetric = info.volumetric;
  const bool own_size = options.data != "synthetic" && !options.data.starts_with("images:");
  request.channels = network.channels > 0 ? network.channels : own_size ? 0 : info.channels;
  request.image_size = network.image_size > 0 ? network.image_size : own_size ? 0 : info.image_size;
  request.classes = network.classes > 0 ? network.classes : options.data == "synthetic" ? info.classes : 0;
  data = open_data(request);
  for (const std::string& warning : data.warnings) note(warning);
  const DataGeometry& geometry = data.train->geometry();
  if (geometry.height != geometry.width || (info.volumetric && geometry.depth != geometry.height)) {
    throw UserError(fmt::format("{}: images of {} x {} are not square; say --image-size N",
                                data.train->name(), geometry.height, geometry.width));
  }
  model.channels = geometry.channels;
  model.image_size = geometry.height;
  model.classes = geometry.classes;
}

void Job::resume_info() {
  if (!options.resume_dir.empty()) {
    const CheckpointInfo info = read_checkpoint_info(options.resume_dir);
    if (info.model != network.name) {
      throw UserError(fmt::format("the checkpoint in '{}' is of {}, not of {}", options.resume_dir,
                                  info.model, network.name));
    }
    if (training) {
      if (info.optimizer != options.optimizer || info.data != options.data) {
        throw UserError(
            fmt::format("the checkpoint in '{}' was made with --optimizer {} --data {}; resume with the same",
                        options.resume_dir, info.optimizer, info.data));
      }
      if (info.batch != whole_batch()) {
        throw UserError(
            ranks->size() == 1
                ? fmt::format("the checkpoint in '{}' was made with --batch {}, not {}; resume with the same",
                              options.resume_dir, info.batch, options.batch)
                : fmt::format(
                      "the checkpoint in '{}' was made with a batch of {} in all; resume with --batch "
                      "and ranks that make the same, not {} x {}",
                      options.resume_dir, info.batch, options.batch, ranks->size()));
      }
      if (info.seed != seed) note(fmt::format("going on with the checkpoint's seed {}", info.seed));
      seed = info.seed;
      first_step = info.step;
      position = info.position;
    }
  }
  if (!training) return;
  const std::int64_t per_epoch = sampler().batches_per_epoch();
  steps = options.steps > 0 ? options.steps : options.epochs * per_epoch;
  const double rate =
      options.learning_rate > 0 ? options.learning_rate : default_learning_rate(optimizer.kind);
  schedule = Schedule::parse(options.schedule, rate, steps);
  if (first_step > 0) {
    note(fmt::format("resuming after step {} of {}", first_step, steps));
  }
}

bool Job::dynamic_kernels() const {
  if (options.kernels != "fixed" && options.kernels != "dynamic") {
    throw UserError(fmt::format("--kernels '{}' is not known; there are fixed and dynamic", options.kernels));
  }
  return options.kernels == "dynamic";
}

Program Job::program_of(std::int64_t batch) const {
  models::ModelOptions of_batch = model;
  of_batch.batch = batch;
  return make_program(network, of_batch, training ? &optimizer : nullptr, evaluating,
                      exchange_options(options, *ranks), dynamic_kernels());
}

void Job::build() {
  const double begin = run::clock_seconds();
  program = program_of(options.batch);
  malloc_trim(0);
  // Before any rank of this machine takes its pool.
  available_bytes = available_memory_bytes() / ranks->communicator().local_size();
  phase("build", run::clock_seconds() - begin,
        fmt::format("{} ops, {} storages, process {}", program.state_graph().ops.size(),
                    program.state_graph().storages, format_bytes(process_memory().resident_bytes)));
}

}  // namespace penstock::training
