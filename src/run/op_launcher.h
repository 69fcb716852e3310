#pragma once

#include <vector>

#include "kernels/kernel.h"
#include "lower/lower.h"
#include "run/residency.h"

namespace penstock::run {

/// Runs ops on what is in memory. Launching and waiting are apart, so that a device whose kernels run on a
/// stream can stand behind it; kernels of the host are complete when launch() returns. One thread.
class OpLauncher {
 public:
  explicit OpLauncher(Residency& residency) : residency_(residency) {}

  /// Finds the op's memory and takes its scratch. What is given must outlive wait().
  void prepare(const lower::Executable& step, ir::OpId op, std::int32_t variant,
               const kernels::StepContext& context);
  void launch();
  /// Until what was launched is complete.
  void wait() {}
  /// Gives back its scratch.
  void finish();

 private:
  Residency& residency_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  const kernels::Kernel* kernel_ = nullptr;
  kernels::KernelArgs args_;
};

}  // namespace penstock::run
