#include "kernels/native/simd/table.h"

#include "kernels/native/simd/program_table.h"
#include "kernels/native/simd/text_table.h"
#include "kernels/native/wide_table.h"

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

/// AVX2's with what there is for AVX-512.
TextTable widened(const WideTable& wide) {
  TextTable table = avx2::text_table();
  table.attention = wide.attention;
  table.attention_floats = wide.attention_floats;
  table.attention_backward = wide.attention_backward;
  table.attention_backward_floats = wide.attention_backward_floats;
  table.gelu = wide.gelu;
  table.gelu_backward = wide.gelu_backward;
  return table;
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
  if (wide() != nullptr) {
    static const TextTable kTable = widened(*wide());
    return kTable;
  }
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
