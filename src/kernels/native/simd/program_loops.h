#pragma once

#include "kernels/native/depthwise.h"
#include "kernels/native/program.h"
#include "kernels/native/reduce.h"
#include "kernels/native/simd/loops.h"

/// The functions behind ProgramTable, once per build of these sources.
namespace penstock::kernels::native::PENSTOCK_SIMD {

void run_program(const ProgramRun& run);
void reduce(const ReduceRun& run);
void depthwise_gradient(const DepthwiseGradient& conv);

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
