#include "autodiff/rules.h"

namespace penstock::autodiff {

using ir::OpKind;

void slice_rule(RuleContext& context) {
  context.emit(OpKind::slice_backward, "backward", {context.dy()}, context.op().attrs, {0});
}

void gather_rule(RuleContext& context) {
  context.emit(OpKind::gather_backward, "backward", {context.dy(), context.in(1)}, context.op().attrs, {0});
}

void nll_rule(RuleContext& context) {
  std::vector<ir::TensorId> inputs{context.in(1), context.out(1), context.dy()};
  if (context.op().inputs.size() > 2) inputs.push_back(context.in(2));
  context.emit(OpKind::nll_loss_backward, "backward", inputs, context.op().attrs, {0});
}

}  // namespace penstock::autodiff
