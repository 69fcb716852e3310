#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// Of log-probabilities [N, C, ...] and labels [N, ...]; weights of classes, labels that do not count.
void set_likelihood(Importer& at, Value logs, const Extents& dims) {
  NetworkBuilder& net = at.net();
  if (dims.size() < 2) at.fail("needs an input [N, C, ...]");
  Extents each = dims, places = dims;
  each.erase(each.begin() + 1);
  places[1] = 1;
  if (at.shape(1) != each) at.fail("has labels of another shape than its input without classes");
  const Value labels = net.reshape(at.value(1), places);
  const Value meant = one_hot(at, labels, 1, dims[1]);
  const Value zero = at.table({1}, {0});
  Value loss = apply(at, "neg", {net.reduce(Reduction::sum, apply(at, "where", {meant, logs, zero}), {1})});
  Value weight;
  if (at.has(2)) {
    Extents along(dims.size() - 1, 1);
    along[0] = dims[1];
    const Value weights = net.reshape(at.value(2), along);
    weight = net.reduce(Reduction::sum, apply(at, "mul", {meant, weights}), {1});
  }
  if (at.node().find("ignore_index") != nullptr) {
    const auto ignored = static_cast<double>(at.integer("ignore_index", 0));
    const Value counts = apply(at, "not_equal", {net.reshape(labels, each), at.table({1}, {ignored})});
    weight = weight == Value{} ? counts : apply(at, "mul", {weight, counts});
  }
  if (weight != Value{}) loss = apply(at, "mul", {loss, weight});
  const std::string how = at.text("reduction", "mean");
  if (how == "none") return at.set(0, loss, each);
  if (how == "sum") return at.set(0, net.reduce(Reduction::sum, loss, {}, false, at.layer()), {});
  if (how != "mean") at.fail("reduces by " + how + ", which is not known");
  if (weight == Value{}) return at.set(0, net.reduce(Reduction::mean, loss, {}, false, at.layer()), {});
  const Value total = net.reduce(Reduction::sum, loss, {}), all = net.reduce(Reduction::sum, weight, {});
  at.set(0, net.apply("div", {total, all}, {}, at.layer()), {});
}

void cross_entropy(Importer& at) {
  const Extents dims = at.shape(0);
  if (dims.size() < 2) at.fail("needs an input [N, C, ...]");
  const Value logs = at.net().log_softmax(at.real_value(0), 1);
  set_likelihood(at, logs, dims);
  at.set(1, logs, dims);
}

void likelihood(Importer& at) {
  set_likelihood(at, at.real_value(0), at.shape(0));
}

}  // namespace

const OpTable& loss_ops() {
  static const OpTable table{{"SoftmaxCrossEntropyLoss", cross_entropy},
                             {"NegativeLogLikelihoodLoss", likelihood}};
  return table;
}

}  // namespace penstock::onnx
