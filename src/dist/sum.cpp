#include "dist/sum.h"

#include <algorithm>

namespace penstock::dist {

void add_in_order(std::span<const float* const> pieces, float scale, float* out, std::int64_t count) {
  // Block by block: the sum stays in the cache, and a piece that is `out` is read before it is written.
  constexpr std::int64_t kBlock = 1024;
  float sum[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    std::copy_n(pieces[0] + begin, size, sum);
    for (const float* piece : pieces.subspan(1)) {
      for (std::int64_t i = 0; i < size; ++i) sum[i] += piece[begin + i];
    }
    for (std::int64_t i = 0; i < size; ++i) out[begin + i] = sum[i] * scale;
  }
}

}  // namespace penstock::dist
