#pragma once

#include "kernels/native/depthwise.h"
#include "kernels/native/program.h"
#include "kernels/native/reduce.h"

namespace penstock::kernels::native {

/// Loops over programs, reductions and depthwise convolutions, compiled and chosen as those of SimdTable. No
/// result depends on the number of threads.
struct ProgramTable {
  void (*run_program)(const ProgramRun& run);
  void (*reduce)(const ReduceRun& run);
  void (*depthwise_gradient)(const DepthwiseGradient& conv);
};

const ProgramTable& program_simd();

}  // namespace penstock::kernels::native
