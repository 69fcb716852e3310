#include <fmt/format.h>

#include "models/builder_impl.h"

namespace penstock {

namespace {

ir::ActivationAttrs activation(ir::Activation function, float alpha = 0) {
  ir::ActivationAttrs attrs;
  attrs.function = function;
  if (function == ir::Activation::leaky_relu) attrs.alpha = alpha;
  return attrs;
}

}  // namespace

Value NetworkBuilder::relu(Value x, const std::string& name) {
  return impl_->make(ir::OpKind::activation, impl_->layer_name(name, x, "relu"), {x},
                     activation(ir::Activation::relu));
}

Value NetworkBuilder::leaky_relu(Value x, float slope, const std::string& name) {
  return impl_->make(ir::OpKind::activation, impl_->layer_name(name, x, "leaky_relu"), {x},
                     activation(ir::Activation::leaky_relu, slope));
}

Value NetworkBuilder::gelu(Value x, const std::string& name) {
  return impl_->make(ir::OpKind::activation, impl_->layer_name(name, x, "gelu"), {x},
                     activation(ir::Activation::gelu));
}

Value NetworkBuilder::sigmoid(Value x, const std::string& name) {
  return impl_->make(ir::OpKind::activation, impl_->layer_name(name, x, "sigmoid"), {x},
                     activation(ir::Activation::sigmoid));
}

Value NetworkBuilder::tanh(Value x, const std::string& name) {
  return impl_->make(ir::OpKind::activation, impl_->layer_name(name, x, "tanh"), {x},
                     activation(ir::Activation::tanh));
}

Value NetworkBuilder::dropout(Value x, float probability, const std::string& name) {
  if (!(probability >= 0 && probability < 1)) {
    throw UserError(fmt::format("dropout probability {} is not in [0, 1)", probability));
  }
  if (probability == 0) return x;
  return impl_->make(ir::OpKind::dropout, impl_->layer_name(name, x, "dropout"), {x},
                     ir::DropoutAttrs{probability, impl_->dropouts++});
}

Value NetworkBuilder::add(Value a, Value b, const std::string& name) {
  return impl_->make(ir::OpKind::add, impl_->layer_name(name, a, "add"), {a, b});
}

Value NetworkBuilder::multiply(Value a, Value b, const std::string& name) {
  return impl_->make(ir::OpKind::multiply, impl_->layer_name(name, a, "multiply"), {a, b});
}

Value NetworkBuilder::softmax(Value x, std::int64_t axis, const std::string& name) {
  return impl_->make(ir::OpKind::softmax, impl_->layer_name(name, x, "softmax"), {x}, ir::AxisAttrs{axis});
}

}  // namespace penstock
