#include <fmt/format.h>

#include "models/builder_impl.h"

// Norms along rows.
namespace penstock {

namespace {

/// x, gamma, (beta), (z) -> y and, where z is added, x + z.
NetworkBuilder::Normed make_norm(NetworkBuilder::Impl& net, const std::string& layer, Value x, Value z,
                                 Value gamma, Value beta, float epsilon, bool rms) {
  ir::LayerNormAttrs attrs;
  attrs.epsilon = epsilon;
  attrs.rms = rms;
  attrs.add = z != Value{};
  std::vector<Value> inputs{x, gamma};
  std::vector<std::string> more;
  if (!rms) {
    inputs.push_back(beta);
    more.emplace_back("mean");
  }
  more.emplace_back("variance");
  if (attrs.add) {
    inputs.push_back(z);
    more.emplace_back("sum");
  }
  const std::vector<Value> made = net.make_all(ir::OpKind::layer_norm, layer, inputs, attrs, more);
  return {made[0], attrs.add ? made.back() : x};
}

/// The parameters of a norm of x: [width].
Value row_state(NetworkBuilder::Impl& net, const std::string& layer, const char* name, Value x, float first) {
  const ir::Shape& in = net.shape(x);
  if (in.rank() < 1) throw UserError(fmt::format("layer {} needs an input [..., D]", layer));
  return net.add_state(layer + name, {in[in.rank() - 1]}, ir::Role::parameter, Init::constant(first));
}

}  // namespace

Value NetworkBuilder::layer_norm(const std::string& name, Value x, float epsilon) {
  const std::string layer = impl_->layer_name(name, x, "layer_norm");
  const Value gamma = row_state(*impl_, layer, ".weight", x, 1);
  const Value beta = row_state(*impl_, layer, ".bias", x, 0);
  return make_norm(*impl_, layer, x, {}, gamma, beta, epsilon, false).y;
}

Value NetworkBuilder::layer_norm(Value x, Value gamma, Value beta, float epsilon, const std::string& name) {
  return make_norm(*impl_, impl_->layer_name(name, x, "layer_norm"), x, {}, gamma, beta, epsilon, false).y;
}

NetworkBuilder::Normed NetworkBuilder::add_layer_norm(Value x, Value z, Value gamma, Value beta,
                                                      float epsilon, const std::string& name) {
  return make_norm(*impl_, impl_->layer_name(name, x, "layer_norm"), x, z, gamma, beta, epsilon, false);
}

Value NetworkBuilder::rms_norm(const std::string& name, Value x, float epsilon) {
  const std::string layer = impl_->layer_name(name, x, "rms_norm");
  const Value gamma = row_state(*impl_, layer, ".weight", x, 1);
  return make_norm(*impl_, layer, x, {}, gamma, {}, epsilon, true).y;
}

Value NetworkBuilder::rms_norm(Value x, Value gamma, float epsilon, const std::string& name) {
  return make_norm(*impl_, impl_->layer_name(name, x, "rms_norm"), x, {}, gamma, {}, epsilon, true).y;
}

NetworkBuilder::Normed NetworkBuilder::add_rms_norm(Value x, Value z, Value gamma, float epsilon,
                                                    const std::string& name) {
  return make_norm(*impl_, impl_->layer_name(name, x, "rms_norm"), x, z, gamma, {}, epsilon, true);
}

}  // namespace penstock
