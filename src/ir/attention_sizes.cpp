#include "ir/attention_sizes.h"

namespace penstock::ir {

AttentionSizes attention_sizes(const AttentionAttrs& attrs, const std::vector<Shape>& in) {
  const Shape& q = in[0];
  AttentionSizes sizes{q[0], attrs.heads, attrs.kv_heads, q[1], q[1], 0};
  switch (attrs.layout) {
    case AttentionLayout::packed:
      sizes.width = q[2] / (attrs.heads + 2 * attrs.kv_heads);
      break;
    case AttentionLayout::rows:
      sizes.keys = in[1][1];
      sizes.width = q[2] / attrs.heads;
      break;
    case AttentionLayout::heads:
      sizes.queries = q[2];
      sizes.keys = in[1][2];
      sizes.width = q[3];
      break;
  }
  return sizes;
}

}  // namespace penstock::ir
