#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// [C, 1...] or [1, C, 1...] beside x [N, C, ...]: C, otherwise 0.
std::int64_t channel_vector(const Extents& x, const Extents& b) {
  if (x.size() < 3 || b.size() > x.size() || b.size() + 1 < x.size()) return 0;
  const std::size_t channels = b.size() + 1 == x.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b[i] != (i == channels ? x[1] : 1)) return 0;
  }
  return x[1];
}

void add(Importer& at) {
  const std::string layer = at.layer();
  for (const std::size_t k : {0U, 1U}) {
    const std::int64_t channels = channel_vector(at.shape(k), at.shape(1 - k));
    if (channels == 0 || at.shape(0) == at.shape(1)) continue;
    const Value bias = at.net().reshape(at.value(1 - k), {channels}, layer + ".bias");
    return at.set(0, at.net().bias(at.value(k), bias, layer));
  }
  if (at.shape(0) != at.shape(1)) at.fail("adds values of different shapes, which is not supported");
  at.set(0, at.net().add(at.value(0), at.value(1), layer));
}

void multiply(Importer& at) {
  if (at.shape(0) != at.shape(1)) at.fail("multiplies values of different shapes, which is not supported");
  at.set(0, at.net().multiply(at.value(0), at.value(1), at.layer()));
}

void sum(Importer& at) {
  if (at.node().inputs.empty()) at.fail("has no input");
  Value total = at.value(0);
  for (std::size_t i = 1; i < at.node().inputs.size(); ++i)
    total = at.net().add(total, at.value(i), at.layer());
  at.set(0, total);
}

void softmax(Importer& at) {
  const Extents x = at.shape(0);
  const std::size_t axis = at.axis(at.integer("axis", at.opset() < 13 ? 1 : -1), x.size());
  // Before opset 13 all axes from `axis` on are one.
  if (at.opset() < 13 && axis + 1 != x.size()) {
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= x[i];
    if (inner != 1) at.fail("has an axis that is not the last, which is not supported before opset 13");
  }
  at.set(0, at.net().softmax(at.value(0), static_cast<std::int64_t>(axis), at.layer()));
}

/// The probability is an attribute before opset 12 and an input from it on. A file for inference has the
/// layer with nothing to do, and training does what it says.
void dropout(Importer& at) {
  float probability = at.real("ratio", 0.5F);
  if (at.opset() >= 12) probability = at.has(1) ? static_cast<float>(at.number(1)) : 0.5F;
  if (at.node().outputs.size() > 1 && !at.node().outputs[1].empty())
    at.fail("gives its mask, which is not supported");
  at.set(0, at.net().dropout(at.value(0), probability, at.layer()));
}

void gelu(Importer& at) {
  const std::string how = at.text("approximate", "none");
  const Value x = at.value(0);
  at.set(0, how == "tanh" ? at.net().gate(Gate::gelu_tanh, x, {}, at.layer()) : at.net().gelu(x, at.layer()));
}

}  // namespace

const OpTable& pointwise_ops() {
  static const OpTable table{
      {"Add", add},
      {"Mul", multiply},
      {"Sum", sum},
      {"Softmax", softmax},
      {"Dropout", dropout},
      {"Gelu", gelu},
      {"Relu", [](Importer& at) { at.set(0, at.net().relu(at.value(0), at.layer())); }},
      {"LeakyRelu",
       [](Importer& at) {
         at.set(0, at.net().leaky_relu(at.value(0), at.real("alpha", 0.01F), at.layer()));
       }},
      {"Sigmoid", [](Importer& at) { at.set(0, at.net().sigmoid(at.value(0), at.layer())); }},
      {"Tanh", [](Importer& at) { at.set(0, at.net().tanh(at.value(0), at.layer())); }},
      {"Swish", [](Importer& at) { at.set(0, at.net().gate(Gate::silu, at.value(0), {}, at.layer())); }},
  };
  return table;
}

}  // namespace penstock::onnx
