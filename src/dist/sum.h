#pragma once

#include <cstdint>
#include <span>

namespace penstock::dist {

/// out[i] = (pieces[0][i] + pieces[1][i] + ...) * scale, added in this order. `out` may be one of the pieces.
void add_in_order(std::span<const float* const> pieces, float scale, float* out, std::int64_t count);

}  // namespace penstock::dist
