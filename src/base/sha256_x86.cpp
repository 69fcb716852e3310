#include "base/sha256_x86.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace penstock {

#if defined(__x86_64__)

bool sha256_x86_available() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (b >> 29 & 1U) != 0 && __builtin_cpu_supports("sse4.1") != 0;
}

__attribute__((target("sha,sse4.1,ssse3"))) void sha256_x86_compress(std::uint32_t* state,
                                                                     const std::uint8_t* data,
                                                                     std::size_t blocks,
                                                                     const std::uint32_t* constants) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  // The instructions want the state as (a, b, e, f) and (c, d, g, h), highest word first.
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xB1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1B);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];
    for (int i = 0; i < 4; ++i) {
      words[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), swap);
    }
    for (int group = 0; group < 16; ++group) {
      const __m128i current = words[group & 3];
      const __m128i sum =
          _mm_add_epi32(current, _mm_loadu_si128(reinterpret_cast<const __m128i*>(constants + 4 * group)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      if (group < 12) {
        const __m128i next = words[(group + 1) & 3];
        const __m128i last = words[(group + 3) & 3];
        const __m128i mixed = _mm_add_epi32(_mm_sha256msg1_epu32(current, next),
                                            _mm_alignr_epi8(last, words[(group + 2) & 3], 4));
        words[group & 3] = _mm_sha256msg2_epu32(mixed, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  low = _mm_shuffle_epi32(abef, 0x1B);
  high = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(low, high, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(high, low, 8));
}

#else

bool sha256_x86_available() {
  return false;
}
void sha256_x86_compress(std::uint32_t*, const std::uint8_t*, std::size_t, const std::uint32_t*) {}

#endif

}  // namespace penstock
