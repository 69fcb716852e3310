#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/sampler.h"
#include "dist/measure.h"
#include "penstock/penstock.h"
#include "train/optimizer.h"
#include "train/program.h"
#include "train/schedule.h"

namespace penstock::training {

enum class Purpose { train, evaluate, plan };

/// What a run of `train`, `evaluate` or `plan` works on, as it follows from the options: data, network,
/// ranks, where it starts, the program. Network and options must outlive it. One thread.
struct Job {
  Job(const Network& of_network, const Options& by_options, Purpose purpose);

  /// Checks the options, opens the data and looks at the checkpoint. Throws UserError.
  void set_up();
  /// Makes the program.
  void build();
  /// A program for another batch.
  Program program_of(std::int64_t batch) const;

  /// Samples of a step of all ranks.
  std::int64_t whole_batch() const { return options.batch * ranks->size(); }
  /// Of the training split.
  Sampler sampler() const;

  /// Tells the user something; rank 0 does.
  void note(const std::string& line) const;
  /// Tells that a part of the run is over.
  void phase(const char* name, double seconds, const std::string& detail) const;

  const Network& network;
  const Options& options;
  const bool planning;
  const bool training;
  const bool evaluating;
  const std::shared_ptr<Ranks> ranks;
  int threads = 0;
  OptimizerOptions optimizer;
  models::ModelOptions model;
  DataSplits data;
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;
  std::int64_t steps = 0;
  DataPosition position;
  Schedule schedule;
  dist::NetworkSpeed speed;          ///< set by who measures it
  Program program;                   ///< after build()
  std::int64_t available_bytes = 0;  ///< of memory, for this rank, before it takes its pool

 private:
  void check_options();
  void check_outputs() const;
  void set_threads();
  /// Data and network agree on sizes: what the user says goes first, then what the data has, then the model's
  /// own.
  void open();
  void resume_info();
  bool dynamic_kernels() const;
};

}  // namespace penstock::training
