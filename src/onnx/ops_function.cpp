#include <limits>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// A function of each element, by its name in ir/functions.h.
struct Named {
  const char* function;
  ElementType type = ElementType::none;  ///< of the result; none: the input's
};

const std::map<std::string, Named>& named_functions() {
  static const std::map<std::string, Named> table{
      {"Abs", {"abs"}},
      {"Acos", {"acos"}},
      {"Acosh", {"acosh"}},
      {"Asin", {"asin"}},
      {"Asinh", {"asinh"}},
      {"Atan", {"atan"}},
      {"Atanh", {"atanh"}},
      {"Ceil", {"ceil"}},
      {"Cos", {"cos"}},
      {"Cosh", {"cosh"}},
      {"Erf", {"erf"}},
      {"Exp", {"exp"}},
      {"Floor", {"floor"}},
      {"HardSwish", {"hardswish"}},
      {"IsNaN", {"isnan", ElementType::boolean}},
      {"Log", {"log"}},
      {"Mish", {"mish"}},
      {"Neg", {"neg"}},
      {"Not", {"logical_not", ElementType::boolean}},
      {"Reciprocal", {"reciprocal"}},
      {"Round", {"round"}},
      {"Sign", {"sign"}},
      {"Sin", {"sin"}},
      {"Sinh", {"sinh"}},
      {"Softplus", {"softplus"}},
      {"Softsign", {"softsign"}},
      {"Sqrt", {"sqrt"}},
      {"Tan", {"tan"}},
  };
  return table;
}

/// What the functions below have in common: one input, a result of the same shape and type.
template <typename F>
void each_element(Importer& at, const F& function) {
  const Extents dims = at.shape(0);
  const ElementType type = at.type(0);
  at.set(0, function(at.value(0)), dims, type);
}

void by_name(Importer& at) {
  const Named& named = named_functions().at(at.node().op_type);
  const Extents dims = at.shape(0);
  const ElementType type = named.type == ElementType::none ? at.type(0) : named.type;
  at.set(0, at.net().apply(named.function, {at.value(0)}, {}, at.layer()), dims, type);
}

void elu(Importer& at) {
  each_element(at, [&](Value x) { return at.net().apply("elu", {x}, {at.real("alpha", 1)}, at.layer()); });
}

void celu(Importer& at) {
  each_element(at, [&](Value x) { return at.net().apply("celu", {x}, {at.real("alpha", 1)}, at.layer()); });
}

void selu(Importer& at) {
  const float alpha = at.real("alpha", 1.67326319217681884765625F);
  const float gamma = at.real("gamma", 1.05070102214813232421875F);
  each_element(at, [&](Value x) {
    return at.net().apply("mul_scalar", {apply(at, "elu", {x}, {alpha})}, {gamma}, at.layer());
  });
}

void thresholded_relu(Importer& at) {
  each_element(at, [&](Value x) {
    return at.net().apply("threshold", {x}, {at.real("alpha", 1), 0}, at.layer());
  });
}

void hard_sigmoid(Importer& at) {
  const float alpha = at.real("alpha", 0.2F), beta = at.real("beta", 0.5F);
  each_element(at, [&](Value x) {
    const Value line = apply(at, "add_scalar", {apply(at, "mul_scalar", {x}, {alpha})}, {beta});
    return at.net().apply("clip", {line}, {0, 1}, at.layer());
  });
}

void shrink(Importer& at) {
  const float bound = at.real("lambd", 0.5F), bias = at.real("bias", 0);
  each_element(at, [&](Value x) {
    // What is beyond the bound moves towards 0 by the bias, all else becomes 0.
    const auto beyond = [&](Value v) {
      const Value part = apply(at, "threshold", {v}, {bound, 0});
      return apply(at, "where", {part, apply(at, "add_scalar", {part}, {-bias}), part});
    };
    return at.net().apply("sub", {beyond(x), beyond(apply(at, "neg", {x}))}, {}, at.layer());
  });
}

void swish(Importer& at) {
  const float alpha = at.real("alpha", 1);
  each_element(at, [&](Value x) {
    if (alpha == 1) return at.net().gate(Gate::silu, x, {}, at.layer());
    const Value share = apply(at, "sigmoid", {apply(at, "mul_scalar", {x}, {alpha})});
    return at.net().apply("mul", {x, share}, {}, at.layer());
  });
}

void is_infinite(Importer& at) {
  const Extents dims = at.shape(0);
  const bool negative = at.integer("detect_negative", 1) != 0;
  const bool positive = at.integer("detect_positive", 1) != 0;
  Value flag = apply(at, "isinf", {at.value(0)});
  if (!negative || !positive) {
    const Value sign = apply(at, "sign", {at.value(0)});
    const Value wanted =
        apply(at, "clip", {apply(at, "mul_scalar", {sign}, {positive ? 1.0F : -1.0F})}, {0, 1});
    flag = apply(at, "mul", {flag, positive || negative ? wanted : apply(at, "mul_scalar", {wanted}, {0})});
  }
  at.set(0, flag, dims, ElementType::boolean);
}

/// Bounds are attributes before opset 11 and inputs from it on.
void clip(Importer& at) {
  const Extents dims = at.shape(0);
  const ElementType type = at.type(0);
  const float infinity = std::numeric_limits<float>::infinity();
  if (at.opset() < 11) {
    const Value y = at.net().apply("clip", {at.value(0)},
                                   {at.real("min", -infinity), at.real("max", infinity)}, at.layer());
    return at.set(0, y, dims, type);
  }
  const auto bound = [&](std::size_t input, float usual) {
    return at.has(input) ? at.scalar(input) : std::optional<float>(usual);
  };
  const auto low = bound(1, -infinity), high = bound(2, infinity);
  Value y = at.value(0);
  if (low && high) {
    y = at.net().apply("clip", {y}, {*low, *high}, at.layer());
  } else {
    if (at.has(1)) y = apply(at, "maximum", {y, at.value(1)});
    if (at.has(2)) y = apply(at, "minimum", {y, at.value(2)});
  }
  at.set(0, y, dims, type);
}

void gelu(Importer& at) {
  const std::string how = at.text("approximate", "none");
  each_element(at, [&](Value x) {
    return how == "tanh" ? at.net().gate(Gate::gelu_tanh, x, {}, at.layer()) : at.net().gelu(x, at.layer());
  });
}

/// Types that only differ in how finely they round are one here: all floats are float32. What a cast to a
/// coarser one rounds off stays.
void cast_to(Importer& at, ElementType to) {
  const ElementType from = at.type(0);
  if (element_bytes(to) == 0) at.fail("casts to " + type_name(to) + ", which is not supported");
  if (!is_floating(to) && to != ElementType::boolean && to != ElementType::s64 && to != ElementType::s32 &&
      (is_floating(from) || element_bytes(from) > element_bytes(to)))
    at.fail("casts " + type_name(from) + " to " + type_name(to) + ", which is not supported");
  const Extents dims = at.shape(0);
  Value x = at.value(0);
  if (to == ElementType::boolean && at.net().dtype(x) != DType::u8) x = at.net().cast(x, DType::u8);
  at.set(0, x, dims, to);
}

void cast(Importer& at) {
  cast_to(at, static_cast<ElementType>(at.integer("to", 0)));
}

void cast_like(Importer& at) {
  cast_to(at, at.type(1));
}

}  // namespace

const OpTable& function_ops() {
  static const OpTable table = [] {
    OpTable made{{"Elu", elu},
                 {"Celu", celu},
                 {"Selu", selu},
                 {"ThresholdedRelu", thresholded_relu},
                 {"HardSigmoid", hard_sigmoid},
                 {"Shrink", shrink},
                 {"Swish", swish},
                 {"IsInf", is_infinite},
                 {"Clip", clip},
                 {"Gelu", gelu},
                 {"Cast", cast},
                 {"CastLike", cast_like}};
    for (const auto& [op, named] : named_functions()) made.emplace(op, by_name);
    made.emplace("Relu", [](Importer& at) {
      each_element(at, [&](Value x) {
        return at.net().dtype(x) == DType::f32 ? at.net().relu(x, at.layer())
                                               : at.net().apply("relu", {x}, {}, at.layer());
      });
    });
    made.emplace("LeakyRelu", [](Importer& at) {
      each_element(at, [&](Value x) { return at.net().leaky_relu(x, at.real("alpha", 0.01F), at.layer()); });
    });
    made.emplace("Sigmoid", [](Importer& at) {
      each_element(at, [&](Value x) { return at.net().sigmoid(x, at.layer()); });
    });
    made.emplace("Tanh", [](Importer& at) {
      each_element(at, [&](Value x) { return at.net().tanh(x, at.layer()); });
    });
    return made;
  }();
  return table;
}

}  // namespace penstock::onnx
