#pragma once

#include "kernels/native/attention.h"
#include "kernels/native/simd/threads.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

/// Words of blocks [first, first + 8) of CounterRandom's stream: element 4 * (block - first) + i has word i.
static inline void draw_blocks(const RandomKey& random, std::uint64_t first, std::uint32_t (&words)[32]) {
  std::uint32_t c0[8];
  std::uint32_t c1[8];
  std::uint32_t c2[8];
  std::uint32_t c3[8];
  for (unsigned i = 0; i < 8; ++i) {
    c0[i] = static_cast<std::uint32_t>(first + i);
    c1[i] = static_cast<std::uint32_t>((first + i) >> 32U);
    c2[i] = random.step;
    c3[i] = random.op;
  }
  std::uint32_t key0 = random.key0;
  std::uint32_t key1 = random.key1;
  for (int round = 0; round < 10; ++round) {
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c0[i];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c2[i];
      c0[i] = static_cast<std::uint32_t>(product1 >> 32U) ^ c1[i] ^ key0;
      c1[i] = static_cast<std::uint32_t>(product1);
      c2[i] = static_cast<std::uint32_t>(product0 >> 32U) ^ c3[i] ^ key1;
      c3[i] = static_cast<std::uint32_t>(product0);
    }
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  for (unsigned i = 0; i < 8; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
