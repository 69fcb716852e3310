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

  void launch(const lower::Executable& step, ir::OpId op, std::int32_t variant,
              const kernels::StepContext& context);
  /// Until all that was launched is complete; gives back its scratch.
  void wait();

 private:
  Residency& residency_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace penstock::run
