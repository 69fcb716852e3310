#include "autodiff/rules.h"
#include "base/error.h"

namespace penstock::autodiff {

using ir::OpKind;

void max_pool_rule(RuleContext& context) {
  require(context.op().outputs.size() > 1, "max pooling without indices has no gradient rule");
  context.emit(OpKind::max_pool_backward, "backward", {context.dy(), context.out(1)}, context.op().attrs,
               {0});
}

void avg_pool_rule(RuleContext& context) {
  context.emit(OpKind::avg_pool_backward, "backward", {context.dy()}, context.op().attrs, {0});
}

void global_avg_pool_rule(RuleContext& context) {
  context.emit(OpKind::global_avg_pool_backward, "backward", {context.dy()}, context.op().attrs, {0});
}

void upsample_rule(RuleContext& context) {
  context.emit(OpKind::upsample_backward, "backward", {context.dy()}, context.op().attrs, {0});
}

}  // namespace penstock::autodiff
