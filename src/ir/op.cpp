#include "ir/op.h"

#include "base/error.h"

namespace penstock::ir {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  throw InternalError("phase_name: not a phase");
}

const char* role_name(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::parameter:
      return "parameter";
    case Role::buffer:
      return "buffer";
    case Role::optimizer_state:
      return "optimizer_state";
    case Role::activation:
      return "activation";
    case Role::gradient:
      return "gradient";
    case Role::workspace:
      return "workspace";
  }
  throw InternalError("role_name: not a role");
}

const char* activation_name(Activation function) {
  switch (function) {
    case Activation::relu:
      return "relu";
    case Activation::leaky_relu:
      return "leaky_relu";
    case Activation::gelu:
      return "gelu";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::tanh:
      return "tanh";
  }
  throw InternalError("activation_name: not an activation");
}

const char* reduction_name(Reduction function) {
  switch (function) {
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
    case Reduction::largest:
      return "largest";
    case Reduction::smallest:
      return "smallest";
    case Reduction::product:
      return "product";
  }
  throw InternalError("reduction_name: not a reduction");
}

const char* exchange_name(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::all_reduce:
      return "all_reduce";
    case ExchangeKind::reduce_scatter:
      return "reduce_scatter";
    case ExchangeKind::all_gather:
      return "all_gather";
  }
  throw InternalError("exchange_name: not an exchange");
}

bool is_update(OpKind kind) {
  return kind == OpKind::sgd_update || kind == OpKind::adam_update;
}

std::int64_t update_begin(const Op& op) {
  const auto* sgd = op.attrs.get_if<SgdAttrs>();
  return sgd != nullptr ? sgd->begin : op.attrs_as<AdamAttrs>().begin;
}

namespace {

/// Changes attributes that both updates have.
template <typename Change>
void change_update(Op& op, const Change& change) {
  if (const auto* sgd = op.attrs.get_if<SgdAttrs>()) {
    SgdAttrs changed = *sgd;
    change(changed);
    op.attrs = changed;
    return;
  }
  auto changed = op.attrs_as<AdamAttrs>();
  change(changed);
  op.attrs = changed;
}

}  // namespace

void set_update_begin(Op& op, std::int64_t begin) {
  change_update(op, [&](auto& attrs) { attrs.begin = begin; });
}

float gradient_scale(const Op& op) {
  const auto* sgd = op.attrs.get_if<SgdAttrs>();
  return sgd != nullptr ? sgd->gradient_scale : op.attrs_as<AdamAttrs>().gradient_scale;
}

void set_gradient_scale(Op& op, float scale) {
  change_update(op, [&](auto& attrs) { attrs.gradient_scale = scale; });
}

void clip_update(Op& op, TensorId scale) {
  change_update(op, [](auto& attrs) { attrs.clipped = true; });
  op.inputs.push_back(scale);
}

}  // namespace penstock::ir
