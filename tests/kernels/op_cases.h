#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace penstock::testing {

enum class Fill : std::uint8_t {
  normal,
  small,     ///< normal, a tenth as large
  positive,  ///< 0.5 to 1.5
  spaced,  ///< no two values and no value and 0 closer than 0.02: no kink within reach of a finite difference
  alternating,  ///< about +8 and -8 in turn: decides the sign of what it is added to
  labels,       ///< s32, 0 to 2
  some_labels,  ///< s32, -1 to 2
  kept,         ///< u8, 0 or 1
  large,        ///< 1.5 to 2.5
};

struct CaseInput {
  ir::Shape shape;
  Fill fill = Fill::normal;
  bool weight = false;         ///< a parameter: the kernel may choose its layout
  bool differentiable = true;  ///< the case asks for its gradient
};

inline CaseInput weight(ir::Shape shape, Fill fill = Fill::normal) {
  return {std::move(shape), fill, true};
}
/// Without a gradient.
inline CaseInput fixed(ir::Shape shape, Fill fill = Fill::normal) {
  return {std::move(shape), fill, false, false};
}
inline CaseInput labels(ir::Shape shape) {
  return fixed(std::move(shape), Fill::labels);
}

/// One op on random inputs. batch_norm with x, gamma, beta, (z) gets its statistics from a
/// batch_norm_statistics op in front of it; with all its inputs given it is the one of evaluation.
struct OpCase {
  std::string name;
  ir::OpKind kind = ir::OpKind::input;
  ir::Attrs attrs;
  std::vector<CaseInput> inputs;
  std::vector<ir::Shape> outputs = {};  ///< only where the inputs do not decide them: input, reshape, split
  bool finite_differences = true;       ///< off where it would take long or meet a kink
  bool in_pytorch = true;               ///< tests/golden/ops.json has what PyTorch makes of it
  ir::DType output_type = ir::DType::f32;
};

/// Those of transformers; op_cases() has them too.
std::vector<OpCase> text_cases();

/// GoogleTest prints a case by its name.
void PrintTo(const OpCase& op_case, std::ostream* out);

/// Every forward op with odd sizes, groups, strides, dilation, one-sided padding, one to three spatial
/// extents. The backward ops come with them: see make_case_graph().
const std::vector<OpCase>& op_cases();

/// Of these, programs, reductions and indices.
std::vector<OpCase> program_cases();

}  // namespace penstock::testing
