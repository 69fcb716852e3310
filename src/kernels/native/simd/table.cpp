#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {

namespace baseline {
const SimdTable& table();
}
#ifdef PENSTOCK_HAS_AVX2_BUILD
namespace avx2 {
const SimdTable& table();
}
#endif

const SimdTable& simd() {
#ifdef PENSTOCK_HAS_AVX2_BUILD
  static const bool kWide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kWide) return avx2::table();
#endif
  return baseline::table();
}

}  // namespace penstock::kernels::native
