#include <fmt/format.h>

#include "ir/functions.h"
#include "models/builder_impl.h"

namespace penstock {
namespace {

using ir::Function;
using ir::ProgramWriter;

/// What each element of a prediction and its target adds to a loss, before the mean over all.
ir::Program program_of_loss(const std::string& loss, float parameter) {
  ProgramWriter w(2);
  if (loss == "mse") {
    const auto difference = w.subtract(0, 1);
    return w.finish({w.multiply(difference, difference)});
  }
  if (loss == "l1") return w.finish({w.apply(Function::abs, w.subtract(0, 1))});
  if (loss == "smooth_l1" || loss == "huber") {
    const bool huber = loss == "huber";
    const auto size = w.apply(Function::abs, w.subtract(0, 1));
    const auto beta = w.constant(parameter);
    const auto inner = w.multiply(w.multiply(size, size), huber ? 0.5F : 0.5F / parameter);
    const auto straight = w.subtract(size, w.constant(0.5F * parameter));
    const auto outer = huber ? w.multiply(straight, parameter) : straight;
    return w.finish({w.select(w.apply(Function::less, size, beta), inner, outer)});
  }
  if (loss == "bce_with_logits") {
    // softplus(x) - x t, without the overflow of exp.
    const auto soft = w.insert(ir::named_function("softplus", {1, 40}), {0})[0];
    return w.finish({w.subtract(soft, w.multiply(0, 1))});
  }
  if (loss == "kl") {
    // t (log t - x), and 0 where t is 0; x are log-probabilities.
    const auto positive = w.apply(Function::less, w.constant(0), 1);
    const auto safe = w.select(positive, 1, w.constant(1));
    const auto part = w.multiply(1, w.subtract(w.apply(Function::log, safe), 0));
    return w.finish({w.select(positive, part, w.constant(0))});
  }
  throw UserError(fmt::format(
      "there is no loss called '{}'; there are cross_entropy, mse, l1, smooth_l1, huber, bce_with_logits and "
      "kl",
      loss));
}

}  // namespace

Value NetworkBuilder::element_loss(const std::string& loss, Value prediction, Value target, float width,
                                   const std::string& name) {
  const std::string layer = impl_->layer_name(name, prediction, loss.c_str());
  const bool needs_positive = loss == "smooth_l1" || loss == "huber";
  if (needs_positive && !(width > 0))
    throw UserError(fmt::format("layer {}: {} is no width of {}; it must be positive", layer, width, loss));
  const Value each = impl_->make(ir::OpKind::pointwise, layer + ".each", {prediction, target},
                                 ir::PointwiseAttrs{program_of_loss(loss, width)});
  ir::ReduceAttrs all{ir::Reduction::mean, {}};
  for (std::size_t i = 0; i < impl_->shape(each).rank(); ++i)
    all.axes.push_back(static_cast<std::int64_t>(i));
  const bool sums = loss == "kl";
  const Value mean = impl_->add_value(sums ? layer + ".mean" : layer, ir::DType::f32, {1});
  impl_->append(ir::OpKind::reduce, ir::Phase::forward, layer, {each}, {mean}, all);
  if (!sums) return mean;
  // "batchmean": the sum over each sample, and the mean over samples.
  const std::int64_t of_sample = impl_->shape(each).elements(1, impl_->shape(each).rank());
  return impl_->make(ir::OpKind::pointwise, layer, {mean},
                     ir::PointwiseAttrs{ir::named_function("mul_scalar", {static_cast<float>(of_sample)})});
}

Value NetworkBuilder::weighted_cross_entropy(Value logits, Value labels, const CrossEntropyOptions& options,
                                             const std::string& name) {
  const std::string layer = impl_->layer_name(name, logits, "cross_entropy");
  if (!(options.smoothing >= 0 && options.smoothing <= 1))
    throw UserError(fmt::format("layer {}: label smoothing {} is not in [0, 1]", layer, options.smoothing));
  const Value shares =
      impl_->make(ir::OpKind::log_softmax, layer + ".log_softmax", {logits}, ir::AxisAttrs{1});
  std::vector<Value> inputs{shares, labels};
  if (options.class_weights != Value{}) inputs.push_back(options.class_weights);
  return impl_->make_all(ir::OpKind::nll_loss, layer, inputs,
                         ir::NllAttrs{options.smoothing, options.ignored}, {"weight"})[0];
}

}  // namespace penstock
