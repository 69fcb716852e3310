#pragma once

#include "ir/op.h"

namespace penstock::ir {

/// By how much pair `pair` of a head turns from one position to the next, in radians.
double rotary_frequency(const RotaryAttrs& attrs, std::int64_t pair);

}  // namespace penstock::ir
