#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/shape.h"

namespace penstock::ir {

struct Inferred {
  std::vector<Shape> shapes;  ///< one per output
  std::string problem;        ///< why the inputs do not fit the op; empty if they do
};

/// The output shapes of a forward op that its inputs and attributes decide. Workspaces have a logical shape
/// only: the mask is x's, the pooling indices y's. Not for inputs, reshape and split (the caller chooses
/// their shapes) nor for backward ops (a stride hides their extents): these throw InternalError.
Inferred infer_shapes(OpKind kind, const Attrs& attrs, const std::vector<Shape>& inputs);

}  // namespace penstock::ir
