#include "kernels/native/wide_table.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace penstock::kernels::native {

#ifdef PENSTOCK_HAS_AVX512_BUILD
namespace avx512 {
const WideTable& wide_table();
}  // namespace avx512

namespace {

bool is_allowed() {
  constexpr auto kWide = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kWide) == kWide;
}

}  // namespace
#endif

const WideTable* wide() {
#ifdef PENSTOCK_HAS_AVX512_BUILD
  static const bool kWide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                            is_allowed();
  if (kWide) return &avx512::wide_table();
#endif
  return nullptr;
}

}  // namespace penstock::kernels::native
