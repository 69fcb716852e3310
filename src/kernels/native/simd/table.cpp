#include "kernels/native/simd/table.h"

#include "kernels/native/simd/program_table.h"
#include "kernels/native/simd/text_table.h"

namespace penstock::kernels::native {

namespace baseline {
const SimdTable& table();
const TextTable& text_table();
const ProgramTable& program_table();
}  // namespace baseline
#ifdef PENSTOCK_HAS_AVX2_BUILD
namespace avx2 {
const SimdTable& table();
const TextTable& text_table();
const ProgramTable& program_table();
}  // namespace avx2
#endif

#ifdef PENSTOCK_HAS_AVX2_BUILD
namespace {

bool is_wide() {
  static const bool kWide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return kWide;
}

}  // namespace
#endif

const SimdTable& simd() {
#ifdef PENSTOCK_HAS_AVX2_BUILD
  if (is_wide()) return avx2::table();
#endif
  return baseline::table();
}

const TextTable& text_simd() {
#ifdef PENSTOCK_HAS_AVX2_BUILD
  if (is_wide()) return avx2::text_table();
#endif
  return baseline::text_table();
}

const ProgramTable& program_simd() {
#ifdef PENSTOCK_HAS_AVX2_BUILD
  if (is_wide()) return avx2::program_table();
#endif
  return baseline::program_table();
}

}  // namespace penstock::kernels::native
