#include "kernels/cpu/request.h"
#include "kernels/native/nll_kernels.h"

namespace penstock::kernels::cpu {

Selection select_nll(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::NllAttrs>();
  Selection selection = request.plain_selection();
  selection.kernel = request.op.kind == ir::OpKind::nll_loss
                         ? native::make_nll_loss(request.input(0).shape, attrs)
                         : native::make_nll_loss_backward(request.output(0).shape, attrs);
  return selection;
}

}  // namespace penstock::kernels::cpu
