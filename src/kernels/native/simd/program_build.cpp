#include "kernels/native/simd/program_loops.h"
#include "kernels/native/simd/program_table.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const ProgramTable& program_table();

const ProgramTable& program_table() {
  static constexpr ProgramTable kTable{run_program, reduce, depthwise_gradient};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
