#pragma once

#include <cstddef>

#include "ir/op.h"

namespace penstock::ir {

inline constexpr std::size_t kManyTensors = 1U << 30;

/// What every op of a kind has in common; the shapes are infer.h's and check_op.h's business.
struct OpInfo {
  OpKind kind;
  const char* name;
  std::size_t attrs;  ///< index of its attributes in the variant Attrs
  std::size_t min_inputs, max_inputs;
  std::size_t min_outputs, max_outputs;
};

const OpInfo& op_info(OpKind kind);

}  // namespace penstock::ir
