#include "session/optimizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"

namespace penstock {

Optimizer Optimizer::sgd(double learning_rate, float momentum) {
  Optimizer optimizer;
  optimizer.learning_rate = learning_rate;
  optimizer.momentum = momentum;
  return optimizer;
}

Optimizer Optimizer::adam(double learning_rate) {
  Optimizer optimizer;
  optimizer.kind = OptimizerKind::adam;
  optimizer.learning_rate = learning_rate;
  return optimizer;
}

Optimizer Optimizer::adamw(double learning_rate, float weight_decay) {
  Optimizer optimizer = adam(learning_rate);
  optimizer.kind = OptimizerKind::adamw;
  optimizer.weight_decay = weight_decay;
  return optimizer;
}

}  // namespace penstock

namespace penstock::session {

namespace {

void check_range(const char* what, float value, bool fits, const char* range) {
  if (!fits) throw UserError(fmt::format("{} {} is out of range; use {}", what, value, range));
}

bool is_fraction(float value) {
  return value >= 0 && value < 1;
}

}  // namespace

double base_learning_rate(const Optimizer& optimizer) {
  if (optimizer.learning_rate > 0) return optimizer.learning_rate;
  return optimizer.kind == OptimizerKind::sgd ? 0.1 : 0.001;
}

void check(const Optimizer& options) {
  if (!(options.learning_rate >= 0))
    throw UserError(fmt::format("learning rate {} is out of range; use 0 or more", options.learning_rate));
  check_range("momentum", options.momentum, is_fraction(options.momentum), "0 up to, not including, 1");
  check_range("weight decay", options.weight_decay, options.weight_decay >= 0, "0 or more");
  check_range("beta1", options.beta1, is_fraction(options.beta1), "0 up to, not including, 1");
  check_range("beta2", options.beta2, is_fraction(options.beta2), "0 up to, not including, 1");
  check_range("epsilon", options.epsilon, options.epsilon >= 0, "0 or more");
  check_range("a clipping norm of", options.clip_norm, options.clip_norm >= 0,
              "0 (nothing is clipped) or more");
  if (options.moments == MomentType::bf16 && options.kind == OptimizerKind::sgd)
    throw UserError("moments in bf16 are Adam's; use adam or adamw, or keep float32");
  if (options.nesterov && options.momentum == 0) {
    throw UserError("Nesterov's rule needs a momentum above 0; set one, 0.9 say, or leave Nesterov off");
  }
}

void append_update(ir::Graph& graph, ir::TensorId parameter, ir::TensorId gradient,
                   const Optimizer& options) {
  const std::string name = graph.tensor(parameter).name;
  ir::Op op;
  op.phase = ir::Phase::update;
  op.name = name + ".update";
  op.inputs = {parameter, gradient};

  const auto add_state = [&](const char* suffix) {
    op.inputs.push_back(
        graph.add_state(name + suffix, graph.tensor(parameter).shape, ir::Role::optimizer_state, {}));
  };
  const bool decays = !options.decay_matrices_only || graph.tensor(parameter).shape.rank() >= 2;
  const float decay = decays ? options.weight_decay : 0;
  if (options.kind == OptimizerKind::sgd) {
    op.kind = ir::OpKind::sgd_update;
    op.attrs = ir::SgdAttrs{options.momentum, decay, options.nesterov};
    if (options.momentum != 0) add_state(".momentum");
  } else {
    op.kind = ir::OpKind::adam_update;
    ir::AdamAttrs attrs{options.beta1, options.beta2, options.epsilon, decay,
                        options.kind == OptimizerKind::adamw};
    if (options.moments == MomentType::bf16) {
      attrs.bf16_moments = true;
      attrs.key = name_key(name);
    }
    op.attrs = attrs;
    add_state(".exp_avg");
    add_state(".exp_avg_sq");
  }

  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const ir::TensorId old = op.inputs[i];
    if (old == gradient) continue;
    const ir::TensorId next = graph.add_successor(old, graph.tensor(old).name + "'");
    graph.replace_carried(old, next);
    op.outputs.push_back(next);
  }
  graph.add_op(std::move(op));
}

}  // namespace penstock::session
