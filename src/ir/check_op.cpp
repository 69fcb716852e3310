#include "ir/check_op.h"

#include <cstring>
#include <optional>

#include "ir/infer.h"
#include "ir/ops/rules.h"

namespace penstock::ir {
namespace {

using rules::expect;

/// The letter of OpFacts::input_types or output_types for tensor `index`.
char letter(const char* types, std::size_t index) {
  const std::size_t count = std::strlen(types);
  return count == 0 ? 'n' : types[std::min(index, count - 1)];
}

/// Checks one side's types; `any` is the type that all tensors with the letter t share.
void expect_types(const Graph& graph, const IdList& ids, const char* types, const char* what,
                  std::optional<DType>& any) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Tensor& tensor = graph.tensor(ids[i]);
    const char type = letter(types, i);
    if (type == 't' && any) expect(tensor.dtype == *any, "it may not change the dtype");
    if (type == 't') any = tensor.dtype;
    const bool fits = type == 'f'   ? tensor.dtype == DType::f32
                      : type == 'i' ? tensor.dtype == DType::s32
                      : type == 'b' ? tensor.dtype == DType::u8
                                    : true;
    expect(fits, "{} {} may not be {}", what, tensor.name, dtype_name(tensor.dtype));
  }
}

/// The outputs are what the inputs decide; a workspace's shape is not looked at.
void expect_inferred(const Op& op, const OpFacts& facts, const OpShapes& shapes) {
  const Inferred inferred = infer_shapes(op.kind, op.attrs, shapes.in);
  if (!inferred.problem.empty()) throw rules::Misfit{inferred.problem};
  const bool left_out = facts.outputs_optional && shapes.out.size() < inferred.shapes.size();
  expect(left_out || inferred.shapes.size() == shapes.out.size(), "{} outputs where {} are needed",
         shapes.out.size(), inferred.shapes.size());
  for (std::size_t i = 0; i < shapes.out.size(); ++i) {
    if (letter(facts.output_types, i) == 'w') continue;
    rules::expect_outputs(shapes, i, i + 1, inferred.shapes[i]);
  }
}

void expect_sound(const Graph& graph, const Op& op) {
  const OpFacts& facts = op_facts(op.kind);
  expect(op.attrs.type() == *facts.attrs, "it has attributes of another op");
  expect(op.inputs.size() >= facts.inputs.min && op.inputs.size() <= facts.inputs.max,
         "it does not take {} inputs", op.inputs.size());
  expect(op.outputs.size() >= facts.outputs.min && op.outputs.size() <= facts.outputs.max,
         "it does not make {} outputs", op.outputs.size());
  std::optional<DType> any;
  expect_types(graph, op.inputs, facts.input_types, "input", any);
  expect_types(graph, op.outputs, facts.output_types, "output", any);
  Shapes in, out;
  for (const TensorId id : op.inputs) in.push_back(graph.tensor(id).shape);
  for (const TensorId id : op.outputs) out.push_back(graph.tensor(id).shape);
  const OpShapes shapes{op.attrs, in, out};
  if (facts.check != nullptr) {
    facts.check(shapes);
  } else if (facts.infer != nullptr) {
    expect_inferred(op, facts, shapes);
  }
}

}  // namespace

std::string check_op(const Graph& graph, const Op& op) {
  try {
    expect_sound(graph, op);
    return {};
  } catch (const rules::Misfit& misfit) {
    return misfit.text;
  }
}

}  // namespace penstock::ir
