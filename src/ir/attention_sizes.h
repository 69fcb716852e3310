#pragma once

#include <vector>

#include "ir/op.h"
#include "ir/shape.h"

namespace penstock::ir {

/// The extents of an attention op. They hold of its gradient too, whose first inputs are the same.
struct AttentionSizes {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, width = 0;
};

/// How many inputs hold queries, keys and values: one where they are packed, else three.
inline std::size_t attention_operands(const AttentionAttrs& attrs) {
  return attrs.layout == AttentionLayout::packed ? 1 : 3;
}

/// Of inputs that fit together: ir/ops/text.cpp says when they do.
AttentionSizes attention_sizes(const AttentionAttrs& attrs, const std::vector<Shape>& in);

}  // namespace penstock::ir
