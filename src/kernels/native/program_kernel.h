#pragma once

#include "kernels/native/function_kernel.h"
#include "kernels/native/program.h"
#include "kernels/native/reduce.h"

namespace penstock::kernels::native {

/// A kernel of a program over `count` elements. `inputs`: how each is walked.
std::shared_ptr<const Kernel> make_program(const ir::Program& program, std::vector<ProgramInput> inputs,
                                           const std::vector<ir::DType>& output_types, std::int64_t count);

/// A kernel of the reduction; x and y come with each run.
std::shared_ptr<const Kernel> make_reduce(const ReduceRun& run);

}  // namespace penstock::kernels::native
