#pragma once

#include <memory>

#include "kernels/kernel.h"
#include "lower/lower.h"
#include "models/models.h"
#include "penstock/penstock.h"
#include "train/optimizer.h"

namespace penstock::training {

/// A network ready to run: its training step, its evaluation, or both, over one numbering of storages and one
/// layout of the state.
struct Program {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<lower::Executable> training;
  std::unique_ptr<lower::Executable> evaluation;

  /// The graph that says which state there is: training's, or evaluation's where that is all.
  const ir::Graph& state_graph() const { return training ? training->graph : evaluation->graph; }
};

/// Builds, fuses, differentiates and lowers. `optimizer` null: no training step. `exchange`: with
/// whom the training step averages its gradients.
Program make_program(const Network& network, const models::ModelOptions& options,
                     const OptimizerOptions* optimizer, bool evaluation,
                     const lower::ExchangeOptions& exchange = {});

/// The unlowered training step: forward, loss, backward, updates.
ir::Graph training_graph(const Network& network, const models::ModelOptions& options,
                         const OptimizerOptions& optimizer);

}  // namespace penstock::training
