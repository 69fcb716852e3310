#include "ir/infer.h"

#include <algorithm>

#include "base/error.h"
#include "ir/ops/rules.h"

namespace penstock::ir {

Inferred infer_shapes(OpKind kind, const Attrs& attrs, const std::vector<Shape>& inputs) {
  using rules::expect;
  const OpFacts& facts = op_facts(kind);
  if (facts.infer == nullptr) {
    throw InternalError(std::string("infer_shapes: the inputs do not decide the shapes of ") + facts.name);
  }
  try {
    expect(inputs.size() >= facts.inputs.min && inputs.size() <= facts.inputs.max,
           "{} does not take {} inputs", facts.name, inputs.size());
    expect(attrs.type() == *facts.attrs, "{} has attributes of another op", facts.name);
    Inferred result{facts.infer(attrs, inputs), {}};
    for (const Shape& shape : result.shapes) {
      const auto& dims = shape.dims();
      expect(std::all_of(dims.begin(), dims.end(), [](auto d) { return d > 0; }), "the result would be {}",
             shape.to_string());
    }
    return result;
  } catch (const rules::Misfit& misfit) {
    return {{}, misfit.text};
  }
}

}  // namespace penstock::ir
