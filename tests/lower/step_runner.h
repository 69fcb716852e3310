#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "lower/lower.h"

namespace penstock::testing {

/// Appends backward ops and an SGD update of every parameter.
ir::Graph training_step(ir::Graph forward, const ir::SgdAttrs& attrs);

/// Runs lowered steps with every storage in memory of its own, on random state and images.
class StepRunner {
 public:
  StepRunner(kernels::Backend& backend, const lower::Executable& executable);

  /// What ops that talk to other ranks get; must outlive it.
  void set_exchanger(kernels::Exchanger* exchanger) { context_.exchanger = exchanger; }

  /// One step; its loss.
  float run();
  /// State by name, in plain order.
  std::map<std::string, std::vector<float>> state() const;

 private:
  void* address(ir::TensorId id) {
    return storages_[static_cast<std::size_t>(executable_.graph.tensor(id).storage)].data();
  }
  void fill(ir::TensorId id);

  kernels::Backend& backend_;
  const lower::Executable& executable_;
  mutable std::vector<std::vector<float>> storages_;
  mutable std::vector<float> scratch_;
  kernels::StepContext context_;
  float loss_ = 0;
};

}  // namespace penstock::testing
