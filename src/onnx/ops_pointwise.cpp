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

/// Before opset 7 an attribute says which axis of the first input the second one begins at.
bool begins_at_axis(Importer& at) {
  return at.opset() < 7 && at.node().find("axis") != nullptr;
}

Extents second_dims(Importer& at) {
  Extents dims = at.shape(1);
  if (!begins_at_axis(at)) return dims;
  const std::size_t rank = at.shape(0).size();
  const std::size_t axis = at.axis(at.integer("axis", 0), rank);
  while (axis + dims.size() < rank) dims.push_back(1);
  return dims;
}

Value second_value(Importer& at, const Extents& dims) {
  const Value x = at.value(1);
  return dims.size() == at.shape(1).size() ? x : at.net().reshape(x, dims);
}

/// A function of two inputs that broadcast. `scalar`: the same with a number that is known in place of the
/// second one, or null.
void binary(Importer& at, const char* function, const char* with_scalar, float sign = 1) {
  const Extents second = second_dims(at);
  const Extents dims = broadcast_dims(at, at.shape(0), second);
  const ElementType type = at.type(0);
  const std::string layer = at.layer();
  const std::optional<float> number = with_scalar == nullptr ? std::nullopt : at.scalar(1);
  const Value y = number ? at.net().apply(with_scalar, {at.value(0)}, {sign * *number}, layer)
                         : at.net().apply(function, {at.value(0), second_value(at, second)}, {}, layer);
  at.set(0, y, dims, type);
}

bool plain_floats(Importer& at) {
  return at.shape(0) == at.shape(1) && !at.shape(0).empty() && is_floating(at.type(0)) &&
         is_floating(at.type(1));
}

void add(Importer& at) {
  if (plain_floats(at)) return at.set(0, at.net().add(at.value(0), at.value(1), at.layer()));
  if (is_floating(at.type(0)) && is_floating(at.type(1)) && !begins_at_axis(at)) {
    for (const std::size_t k : {0U, 1U}) {
      const std::int64_t channels = channel_vector(at.shape(k), at.shape(1 - k));
      if (channels == 0) continue;
      const std::string layer = at.layer();
      const Value bias = at.net().reshape(at.value(1 - k), {channels}, layer + ".bias");
      return at.set(0, at.net().bias(at.value(k), bias, layer));
    }
  }
  binary(at, "add", "add_scalar");
}

void subtract(Importer& at) {
  binary(at, "sub", "add_scalar", -1);
}

void multiply(Importer& at) {
  if (plain_floats(at)) return at.set(0, at.net().multiply(at.value(0), at.value(1), at.layer()));
  binary(at, "mul", "mul_scalar");
}

void divide(Importer& at) {
  binary(at, "div", "div_scalar");
}

/// An exponent in the file is no weight to train: its gradient needs the logarithm of the base.
void power(Importer& at) {
  if (at.is_initializer(1) && at.shape(1).size() <= 1 && product_of(at.shape(1)) == 1) at.constant(1);
  binary(at, "pow", "pow_scalar");
}

/// Of the sign of the divisor, or (fmod) of the dividend.
void modulo(Importer& at) {
  if (at.integer("fmod", 0) == 0) return binary(at, "remainder", nullptr);
  const Extents dims = broadcast_dims(at, at.shape(0), at.shape(1));
  const Value a = at.value(0);
  const Value rest = apply(at, "remainder", {apply(at, "abs", {a}), apply(at, "abs", {at.value(1)})});
  const ElementType type = at.type(0);
  at.set(0, at.net().apply("mul", {rest, apply(at, "sign", {a})}, {}, at.layer()), dims, type);
}

/// Before opset 7 slopes are of channels.
void prelu(Importer& at) {
  const Extents x = at.shape(0);
  if (at.opset() >= 7 || x.size() < 2 || at.shape(1) != Extents{x[1]} || x[1] == 1)
    return binary(at, "prelu", nullptr);
  Extents along(x.size() - 1, 1);
  along[0] = x[1];
  const Value slope = at.net().reshape(at.value(1), along);
  at.set(0, at.net().apply("prelu", {at.value(0), slope}, {}, at.layer()), x);
}

void compare(Importer& at) {
  static const std::map<std::string, const char*> functions{
      {"Equal", "equal"},
      {"Less", "less"},
      {"LessOrEqual", "less_equal"},
      {"Greater", "greater"},
      {"GreaterOrEqual", "greater_equal"},
      {"And", "logical_and"},
      {"Or", "logical_or"},
      {"Xor", "logical_xor"},
  };
  const Extents dims = broadcast_dims(at, at.shape(0), at.shape(1));
  const Value y =
      at.net().apply(functions.at(at.node().op_type), {at.value(0), at.value(1)}, {}, at.layer(), DType::u8);
  at.set(0, y, dims, ElementType::boolean);
}

void where(Importer& at) {
  const Extents dims = broadcast_dims(at, broadcast_dims(at, at.shape(0), at.shape(1)), at.shape(2));
  const ElementType type = at.type(1);
  at.set(0, at.net().apply("where", {at.value(0), at.value(1), at.value(2)}, {}, at.layer()), dims, type);
}

/// One function over any number of inputs.
void fold_inputs(Importer& at, const char* function, bool mean) {
  const std::size_t count = at.node().inputs.size();
  if (count == 0) at.fail("has no input");
  Extents dims = at.shape(0);
  Value total = at.value(0);
  const ElementType type = at.type(0);
  for (std::size_t i = 1; i < count; ++i) {
    dims = broadcast_dims(at, dims, at.shape(i));
    total = apply(at, function, {total, at.value(i)});
  }
  if (mean && count > 1) total = apply(at, "div_scalar", {total}, {static_cast<float>(count)});
  at.set(0, total, dims, type);
}

/// Before opset 13 all axes from `axis` on are one.
void softmax(Importer& at) {
  const Extents x = at.shape(0);
  if (x.empty()) at.fail("needs an axis");
  const bool joined = at.opset() < 13;
  const std::size_t axis = at.axis(at.integer("axis", joined ? 1 : -1), x.size());
  const bool logarithm = at.node().op_type == "LogSoftmax";
  const auto function = [&](Value v, std::int64_t along, const std::string& name) {
    return logarithm ? at.net().log_softmax(v, along, name) : at.net().softmax(v, along, name);
  };
  if (!joined || axis + 1 == x.size())
    return at.set(0, function(at.value(0), static_cast<std::int64_t>(axis), at.layer()));
  const Value rows = at.net().reshape(at.value(0), {product_of(x, 0, axis), product_of(x, axis, x.size())});
  at.set(0, function(rows, 1, at.layer()), x);
}

/// The probability is an attribute before opset 12 and an input from it on. A file for inference has the
/// layer with nothing to do, and training does what it says.
void dropout(Importer& at) {
  float probability = at.real("ratio", 0.5F);
  if (at.opset() >= 12) probability = at.has(1) ? static_cast<float>(at.number(1)) : 0.5F;
  const bool at_random = at.has(2) && at.number(2) != 0 && probability > 0;
  if (at_random && !at.trains())
    at.fail("drops elements at random, which is done only where the network is trained");
  const Extents dims = at.shape(0);
  if (at.wants(1)) {
    if (at.trains()) at.fail("gives its mask, which is not supported");
    const Value all = apply(at, "equal", {at.value(0), at.value(0)});
    const Value none = apply(at, "isnan", {at.value(0)});
    at.set(1, apply(at, "logical_or", {all, none}), dims, ElementType::boolean);
  }
  if (probability == 0) return at.set(0, at.value(0), dims);
  at.set(0, at.net().dropout(at.value(0), probability, at.layer()), dims);
}

}  // namespace

const OpTable& pointwise_ops() {
  static const OpTable table{
      {"Add", add},
      {"Sub", subtract},
      {"Mul", multiply},
      {"Div", divide},
      {"Pow", power},
      {"Mod", modulo},
      {"PRelu", prelu},
      {"Equal", compare},
      {"Less", compare},
      {"LessOrEqual", compare},
      {"Greater", compare},
      {"GreaterOrEqual", compare},
      {"And", compare},
      {"Or", compare},
      {"Xor", compare},
      {"Where", where},
      {"Sum", [](Importer& at) { fold_inputs(at, "add", false); }},
      {"Mean", [](Importer& at) { fold_inputs(at, "add", true); }},
      {"Max", [](Importer& at) { fold_inputs(at, "maximum", false); }},
      {"Min", [](Importer& at) { fold_inputs(at, "minimum", false); }},
      {"Softmax", softmax},
      {"LogSoftmax", softmax},
      {"Dropout", dropout},
  };
  return table;
}

}  // namespace penstock::onnx
