#include <fmt/format.h>

#include "models/builder_impl.h"

namespace penstock {

Value NetworkBuilder::cross_entropy(Value logits, Value labels, const std::string& name) {
  const std::string layer = impl_->layer_name(name, logits, "cross_entropy");
  return impl_->make_all(ir::OpKind::cross_entropy, layer, {logits, labels}, ir::MeanAttrs{},
                         {"probabilities"})[0];
}

Value NetworkBuilder::count_correct(Value logits, Value labels, const std::string& name) {
  return impl_->make(ir::OpKind::count_correct, impl_->layer_name(name, logits, "count_correct"),
                     {logits, labels}, {}, ir::DType::s32);
}

void NetworkBuilder::loss(Value value) {
  const ir::Tensor& tensor = impl_->tensor(value);
  if (tensor.dtype != ir::DType::f32 || tensor.shape.elements() != 1) {
    throw UserError(fmt::format("the loss of {} would be {} {}; it must be one f32 number", impl_->graph.name,
                                ir::dtype_name(tensor.dtype), tensor.shape.to_string()));
  }
  output("loss", value);
  impl_->graph.loss = impl_->id(value);
}

void NetworkBuilder::classifier(Value logits, Value labels) {
  const Value mean = cross_entropy(logits, labels, "loss");
  const Value correct = count_correct(logits, labels, "correct");
  loss(mean);
  output("logits", logits, true);
  output("correct", correct, true);
}

}  // namespace penstock
