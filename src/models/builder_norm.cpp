#include <fmt/format.h>

#include "models/builder_impl.h"

namespace penstock {

namespace {

struct NormState {
  Value gamma, beta, running_mean, running_var;
};

Value make_batch_norm(NetworkBuilder::Impl& net, const std::string& layer, Value x, const NormState& state,
                      float epsilon, float momentum) {
  const ir::Shape in = net.shape(x);
  ir::NormAttrs attrs;
  attrs.epsilon = epsilon;
  const ir::Shape per_channel{in[1]};
  const Value mean = net.add_value(layer + ".mean", ir::DType::f32, per_channel);
  const Value variance = net.add_value(layer + ".variance", ir::DType::f32, per_channel);
  net.append(ir::OpKind::batch_norm_statistics, ir::Phase::forward, layer + ".statistics", {x},
             {mean, variance}, attrs);
  const Value y =
      net.make(ir::OpKind::batch_norm, layer, {x, state.gamma, state.beta, mean, variance}, attrs);
  const ir::TensorId begin_mean = net.id(state.running_mean), begin_var = net.id(state.running_var);
  // Where the same statistics were updated before, this update goes on from there.
  const auto newest = [&](ir::TensorId begin) {
    for (const ir::Carried& carried : net.graph.carried) {
      if (carried.begin == begin) return carried.end;
    }
    throw UserError(fmt::format("layer {}: the running statistics must be buffers", layer));
  };
  const Value old_mean{newest(begin_mean)}, old_var{newest(begin_var)};
  const Value next_mean{net.graph.add_successor(old_mean.id, layer + ".running_mean'")};
  const Value next_var{net.graph.add_successor(old_var.id, layer + ".running_var'")};
  net.append(ir::OpKind::statistics_update, ir::Phase::update, layer + ".update",
             {old_mean, old_var, mean, variance}, {next_mean, next_var},
             ir::StatisticsAttrs{momentum, in.elements() / in[1]});
  net.graph.replace_carried(begin_mean, next_mean.id);
  net.graph.replace_carried(begin_var, next_var.id);
  return y;
}

}  // namespace

Value NetworkBuilder::batch_norm(const std::string& name, Value x, float epsilon, float momentum) {
  const std::string layer = impl_->layer_name(name, x, "batch_norm");
  impl_->check_channels(layer, x);
  const ir::Shape per_channel{impl_->shape(x)[1]};
  NormState state;
  state.gamma = impl_->add_state(layer + ".weight", per_channel, ir::Role::parameter, Init::constant(1));
  state.beta = impl_->add_state(layer + ".bias", per_channel, ir::Role::parameter, Init::constant(0));
  state.running_mean =
      impl_->add_state(layer + ".running_mean", per_channel, ir::Role::buffer, Init::constant(0));
  state.running_var =
      impl_->add_state(layer + ".running_var", per_channel, ir::Role::buffer, Init::constant(1));
  return make_batch_norm(*impl_, layer, x, state, epsilon, momentum);
}

Value NetworkBuilder::batch_norm(Value x, Value gamma, Value beta, Value running_mean, Value running_var,
                                 float epsilon, float momentum, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "batch_norm");
  impl_->check_channels(layer, x);
  return make_batch_norm(*impl_, layer, x, {gamma, beta, running_mean, running_var}, epsilon, momentum);
}

Value NetworkBuilder::lrn(Value x, const LrnOptions& options, const std::string& name) {
  return impl_->make(ir::OpKind::lrn, impl_->layer_name(name, x, "lrn"), {x},
                     ir::LrnAttrs{options.size, options.alpha, options.beta, options.k});
}

}  // namespace penstock
