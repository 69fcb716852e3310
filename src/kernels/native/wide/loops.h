#pragma once

#include "kernels/native/grouped.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void grouped_conv(const GroupedConv& conv);
void grouped_gradient(const GroupedGradient& conv);

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
