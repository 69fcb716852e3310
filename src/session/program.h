#pragma once

#include <memory>

#include "fit/fit.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "penstock/network.h"
#include "penstock/options.h"

namespace penstock::session {

/// A network ready to run: its training step, its evaluation, or both, over one numbering of storages and one
/// layout of the state.
struct Program {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<lower::Executable> training;
  std::unique_ptr<lower::Executable> evaluation;

  /// The graph that says which state there is: training's, or evaluation's where that is all.
  const ir::Graph& state_graph() const { return training ? training->graph : evaluation->graph; }
  fit::Steps steps() const { return {training.get(), evaluation.get()}; }
};

/// What a program is to be made of.
struct ProgramRequest {
  const Optimizer* optimizer = nullptr;  ///< null: no training step
  bool evaluation = false;
  bool variants = false;  ///< the training step has all variants of its kernels
  lower::ExchangeOptions exchange;
  std::int64_t accumulate = 1;        ///< micro-batches a step
  std::int64_t slice_samples = 0;     ///< of a slice of the batch; 0: the batch is not cut
  std::optional<std::int64_t> bands;  ///< of each image; none: as suits the network and its slices
  bool repeat_cheap = true;           ///< what costs little is made again in backward, whatever the plan
};

/// Fuses, differentiates and lowers a network.
Program make_program(const Network& network, const ProgramRequest& request);

/// The unlowered training step: forward, loss, backward, updates.
ir::Graph training_graph(const Network& network, const Optimizer& optimizer, bool repeat_cheap = true);

}  // namespace penstock::session
