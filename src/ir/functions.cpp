#include "ir/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numbers>

#include "base/error.h"

namespace penstock::ir {
namespace {

using Value = ProgramWriter::Value;
using Floats = std::vector<float>;

/// A writer with the words that activations are written in; x is input 0.
class Writer : public ProgramWriter {
 public:
  using ProgramWriter::ProgramWriter;
  Value c(float value) { return constant(value); }
  Value f(Function function, Value a, Value b = -1) { return apply(function, a, b); }
  Value positive(Value a) { return f(Function::less, c(0), a); }
  Value at_most(Value a, float bound) { return f(Function::smaller, a, c(bound)); }
  Value at_least(Value a, float bound) { return f(Function::larger, a, c(bound)); }
  /// Flat outside of the bounds and at them, as PyTorch's hardtanh and relu6.
  Value between(Value a, float low, float high) {
    return select(f(Function::less, c(low), a), select(f(Function::less, a, c(high)), a, c(high)), c(low));
  }
  Value flipped(Value flag) { return subtract(c(1), flag); }
  Value truth(Value a) { return flipped(f(Function::equal, a, c(0))); }
  /// scale * (exp(a / width) - 1), for a below 0.
  Value bend(Value a, float scale, float width) {
    return multiply(f(Function::exp_minus_1, multiply(at_most(a, 0), 1 / width)), scale);
  }
  Value softplus(Value a, float beta, float threshold) {
    const Value scaled = multiply(a, beta);
    const Value soft =
        multiply(f(Function::log_1_plus, f(Function::exp, at_most(scaled, threshold))), 1 / beta);
    return select(f(Function::less, c(threshold), scaled), a, soft);
  }
};

struct Named {
  std::int32_t inputs;
  Floats defaults;
  Value (*write)(Writer& w, const Floats& p);
};

template <Function function>
Value plain(Writer& w, const Floats& /*p*/) {
  const int operands = operand_count(function);
  return w.apply(function, 0, operands > 1 ? 1 : -1, operands > 2 ? 2 : -1);
}

void add_activations(std::map<std::string, Named>& all) {
  all["relu"] = {1, {}, [](Writer& w, const Floats&) { return w.select(w.positive(0), 0, w.c(0)); }};
  all["relu6"] = {1, {}, [](Writer& w, const Floats&) { return w.between(0, 0, 6); }};
  all["hardtanh"] = {1, {-1, 1}, [](Writer& w, const Floats& p) { return w.between(0, p[0], p[1]); }};
  all["leaky_relu"] = {
      1, {0.01F}, [](Writer& w, const Floats& p) { return w.select(w.positive(0), 0, w.multiply(0, p[0])); }};
  all["prelu"] = {
      2, {}, [](Writer& w, const Floats&) { return w.select(w.positive(0), 0, w.multiply(0, 1)); }};
  all["elu"] = {
      1, {1}, [](Writer& w, const Floats& p) { return w.select(w.positive(0), 0, w.bend(0, p[0], 1)); }};
  all["celu"] = {
      1, {1}, [](Writer& w, const Floats& p) { return w.select(w.positive(0), 0, w.bend(0, p[0], p[0])); }};
  all["selu"] = {1, {}, [](Writer& w, const Floats&) {
                   constexpr float kScale = 1.0507009873554804934F;
                   constexpr float kAlpha = 1.6732632423543772848F;
                   return w.select(w.positive(0), w.multiply(0, kScale), w.bend(0, kScale * kAlpha, 1));
                 }};
  all["gelu"] = {1, {}, [](Writer& w, const Floats&) {
                   const Value share =
                       w.f(Function::erf, w.multiply(0, static_cast<float>(std::numbers::sqrt2 / 2)));
                   return w.multiply(w.multiply(0, 0.5F), w.add(share, w.c(1)));
                 }};
  all["gelu_tanh"] = {1, {}, [](Writer& w, const Floats&) {
                        constexpr auto kRoot =
                            static_cast<float>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
                        const Value cubic = w.multiply(w.multiply(w.multiply(0, 0), 0), 0.044715F);
                        const Value inner = w.multiply(w.add(0, cubic), kRoot);
                        return w.multiply(w.multiply(0, 0.5F), w.add(w.f(Function::tanh, inner), w.c(1)));
                      }};
  all["silu"] = {1, {}, [](Writer& w, const Floats&) { return w.multiply(0, w.f(Function::sigmoid, 0)); }};
  all["hardsigmoid"] = {1, {}, [](Writer& w, const Floats&) {
                          return w.multiply(w.between(w.add(0, w.c(3)), 0, 6), 1.0F / 6);
                        }};
  all["hardswish"] = {1, {}, [](Writer& w, const Floats&) {
                        return w.multiply(0, w.multiply(w.between(w.add(0, w.c(3)), 0, 6), 1.0F / 6));
                      }};
  all["softplus"] = {1, {1, 20}, [](Writer& w, const Floats& p) { return w.softplus(0, p[0], p[1]); }};
  all["mish"] = {1, {}, [](Writer& w, const Floats&) {
                   return w.multiply(0, w.f(Function::tanh, w.softplus(0, 1, 20)));
                 }};
  all["logsigmoid"] = {1, {}, [](Writer& w, const Floats&) { return w.neg(w.softplus(w.neg(0), 1, 20)); }};
  all["softsign"] = {
      1, {}, [](Writer& w, const Floats&) { return w.divide(0, w.add(w.f(Function::abs, 0), w.c(1))); }};
  all["tanhshrink"] = {1, {}, [](Writer& w, const Floats&) { return w.subtract(0, w.f(Function::tanh, 0)); }};
  all["softshrink"] = {1, {0.5F}, [](Writer& w, const Floats& p) {
                         return w.add(w.at_least(w.subtract(0, w.c(p[0])), 0),
                                      w.at_most(w.add(0, w.c(p[0])), 0));
                       }};
  all["hardshrink"] = {1, {0.5F}, [](Writer& w, const Floats& p) {
                         return w.select(w.f(Function::less_or_equal, w.f(Function::abs, 0), w.c(p[0])),
                                         w.c(0), 0);
                       }};
  all["threshold"] = {1, {0, 0}, [](Writer& w, const Floats& p) {
                        return w.select(w.f(Function::less, w.c(p[0]), 0), 0, w.c(p[1]));
                      }};
}

void add_arithmetic(std::map<std::string, Named>& all) {
  all["copy"] = {1, {}, plain<Function::copy>};
  all["neg"] = {1, {}, plain<Function::neg>};
  all["abs"] = {1, {}, plain<Function::abs>};
  all["sign"] = {1, {}, plain<Function::sign>};
  all["floor"] = {1, {}, plain<Function::floor>};
  all["ceil"] = {1, {}, plain<Function::ceil>};
  all["round"] = {1, {}, plain<Function::round>};
  all["trunc"] = {1, {}, plain<Function::truncate>};
  all["sqrt"] = {1, {}, plain<Function::square_root>};
  all["rsqrt"] = {1, {}, plain<Function::reciprocal_root>};
  all["reciprocal"] = {1, {}, plain<Function::reciprocal>};
  all["exp"] = {1, {}, plain<Function::exp>};
  all["expm1"] = {1, {}, plain<Function::exp_minus_1>};
  all["log"] = {1, {}, plain<Function::log>};
  all["log1p"] = {1, {}, plain<Function::log_1_plus>};
  all["erf"] = {1, {}, plain<Function::erf>};
  all["sigmoid"] = {1, {}, plain<Function::sigmoid>};
  all["tanh"] = {1, {}, plain<Function::tanh>};
  all["sin"] = {1, {}, plain<Function::sin>};
  all["cos"] = {1, {}, plain<Function::cos>};
  all["tan"] = {1, {}, plain<Function::tan>};
  all["asin"] = {1, {}, plain<Function::asin>};
  all["acos"] = {1, {}, plain<Function::acos>};
  all["atan"] = {1, {}, plain<Function::atan>};
  all["sinh"] = {1, {}, plain<Function::sinh>};
  all["cosh"] = {1, {}, plain<Function::cosh>};
  all["asinh"] = {1, {}, plain<Function::asinh>};
  all["acosh"] = {1, {}, plain<Function::acosh>};
  all["atanh"] = {1, {}, plain<Function::atanh>};
  all["isnan"] = {1, {}, plain<Function::is_nan>};
  all["isinf"] = {1, {}, plain<Function::is_infinite>};
  all["square"] = {1, {}, [](Writer& w, const Floats&) { return w.multiply(0, 0); }};
  all["clip"] = {1,
                 {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()},
                 [](Writer& w, const Floats& p) { return w.at_most(w.at_least(0, p[0]), p[1]); }};
  all["add"] = {2, {}, plain<Function::add>};
  all["sub"] = {2, {}, plain<Function::subtract>};
  all["mul"] = {2, {}, plain<Function::multiply>};
  all["div"] = {2, {}, plain<Function::divide>};
  all["pow"] = {2, {}, plain<Function::power>};
  all["minimum"] = {2, {}, plain<Function::smaller>};
  all["maximum"] = {2, {}, plain<Function::larger>};
  all["remainder"] = {2, {}, plain<Function::remainder>};
  // With a number in place of the second tensor.
  all["add_scalar"] = {1, {0}, [](Writer& w, const Floats& p) { return w.add(0, w.c(p[0])); }};
  all["mul_scalar"] = {1, {1}, [](Writer& w, const Floats& p) { return w.multiply(0, p[0]); }};
  all["div_scalar"] = {1, {1}, [](Writer& w, const Floats& p) { return w.divide(0, w.c(p[0])); }};
  all["rsub_scalar"] = {1, {0}, [](Writer& w, const Floats& p) { return w.subtract(w.c(p[0]), 0); }};
  all["rdiv_scalar"] = {1, {1}, [](Writer& w, const Floats& p) { return w.divide(w.c(p[0]), 0); }};
  all["pow_scalar"] = {1, {1}, [](Writer& w, const Floats& p) {
                         if (p[0] == 0) return w.c(1);
                         if (p[0] == 1) return Value{0};
                         if (p[0] == 2) return w.multiply(0, 0);
                         if (p[0] == 3) return w.multiply(w.multiply(0, 0), 0);
                         if (p[0] == -1) return w.f(Function::reciprocal, 0);
                         if (p[0] == 0.5F) return w.f(Function::square_root, 0);
                         if (p[0] == -0.5F) return w.f(Function::reciprocal_root, 0);
                         return w.f(Function::power, 0, w.c(p[0]));
                       }};
}

void add_logic(std::map<std::string, Named>& all) {
  all["where"] = {3, {}, plain<Function::select>};
  all["less"] = {2, {}, plain<Function::less>};
  all["less_equal"] = {2, {}, plain<Function::less_or_equal>};
  all["greater"] = {2, {}, [](Writer& w, const Floats&) { return w.f(Function::less, 1, 0); }};
  all["greater_equal"] = {2, {}, [](Writer& w, const Floats&) { return w.f(Function::less_or_equal, 1, 0); }};
  all["equal"] = {2, {}, plain<Function::equal>};
  all["not_equal"] = {2, {}, [](Writer& w, const Floats&) { return w.flipped(w.f(Function::equal, 0, 1)); }};
  all["logical_not"] = {1, {}, [](Writer& w, const Floats&) { return w.f(Function::equal, 0, w.c(0)); }};
  all["logical_and"] = {2, {}, [](Writer& w, const Floats&) { return w.multiply(w.truth(0), w.truth(1)); }};
  all["logical_or"] = {
      2, {}, [](Writer& w, const Floats&) { return w.f(Function::larger, w.truth(0), w.truth(1)); }};
  all["logical_xor"] = {2, {}, [](Writer& w, const Floats&) {
                          return w.flipped(w.f(Function::equal, w.truth(0), w.truth(1)));
                        }};
}

const std::map<std::string, Named>& functions() {
  static const std::map<std::string, Named> all = [] {
    std::map<std::string, Named> made;
    add_activations(made);
    add_arithmetic(made);
    add_logic(made);
    return made;
  }();
  return all;
}

}  // namespace

Program named_function(const std::string& name, const Floats& parameters) {
  const auto found = functions().find(name);
  if (found == functions().end()) throw UserError(fmt::format("there is no function called '{}'", name));
  const Named& named = found->second;
  if (parameters.size() > named.defaults.size()) {
    throw UserError(fmt::format("the function '{}' takes {} parameters, not {}", name, named.defaults.size(),
                                parameters.size()));
  }
  Floats all = named.defaults;
  std::copy(parameters.begin(), parameters.end(), all.begin());
  Writer writer(named.inputs);
  const Value result = named.write(writer, all);
  return writer.finish({result});
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const auto& [name, named] : functions()) names.push_back(name);
  return names;
}

}  // namespace penstock::ir
