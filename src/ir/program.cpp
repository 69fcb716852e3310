#include "ir/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace penstock::ir {
namespace {

struct FunctionFacts {
  const char* name;
  int operands;
};

constexpr std::array<FunctionFacts, kFunctions> kFacts{{
    {"constant", 0},
    {"copy", 1},
    {"neg", 1},
    {"abs", 1},
    {"sign", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"truncate", 1},
    {"square_root", 1},
    {"reciprocal_root", 1},
    {"reciprocal", 1},
    {"exp", 1},
    {"exp_minus_1", 1},
    {"log", 1},
    {"log_1_plus", 1},
    {"erf", 1},
    {"sigmoid", 1},
    {"tanh", 1},
    {"sin", 1},
    {"cos", 1},
    {"tan", 1},
    {"asin", 1},
    {"acos", 1},
    {"atan", 1},
    {"sinh", 1},
    {"cosh", 1},
    {"asinh", 1},
    {"acosh", 1},
    {"atanh", 1},
    {"is_nan", 1},
    {"is_infinite", 1},
    {"add", 2},
    {"subtract", 2},
    {"multiply", 2},
    {"divide", 2},
    {"power", 2},
    {"smaller", 2},
    {"larger", 2},
    {"remainder", 2},
    {"less", 2},
    {"less_or_equal", 2},
    {"equal", 2},
    {"select", 3},
}};

const FunctionFacts& facts(Function function) {
  const auto index = static_cast<std::size_t>(function);
  require(index < kFacts.size(), "not a function of programs");
  return kFacts[index];
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

std::array<std::int32_t, 3> operands(const Step& step) {
  return {step.a, step.b, step.c};
}

}  // namespace

const char* function_name(Function function) {
  return facts(function).name;
}

int operand_count(Function function) {
  return facts(function).operands;
}

std::string program_text(const Program& program) {
  std::string text = fmt::format("{} inputs", program.inputs);
  for (const Step& step : program.steps) {
    text += fmt::format("; {}", function_name(step.function));
    if (step.function == Function::constant) text += fmt::format(" {}", step.value);
    for (int i = 0; i < operand_count(step.function); ++i) {
      text += fmt::format(" {}", operands(step)[static_cast<std::size_t>(i)]);
    }
  }
  text += " ->";
  for (const std::int32_t output : program.outputs) text += fmt::format(" {}", output);
  return text;
}

ProgramWriter::Value ProgramWriter::constant(float value) {
  Step step;
  step.value = value;
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& known = program_.steps[i];
    // By their bits, because 0 and -0 are equal and NaN is not equal to itself.
    if (known.function == Function::constant && bits(known.value) == bits(value)) {
      return program_.inputs + static_cast<Value>(i);
    }
  }
  program_.steps.push_back(step);
  return program_.inputs + static_cast<Value>(program_.steps.size()) - 1;
}

const Step* ProgramWriter::step(Value value) const {
  return value >= program_.inputs ? &program_.steps[static_cast<std::size_t>(value - program_.inputs)]
                                  : nullptr;
}

bool ProgramWriter::is(Value value, float constant) const {
  const Step* made = step(value);
  return made != nullptr && made->function == Function::constant && made->value == constant;
}

/// An existing value that the step would only repeat, or -1. Gradients multiply by many ones and zeros; a
/// factor of zero makes zero whatever the other is, because it stands for a gradient that does not flow.
ProgramWriter::Value ProgramWriter::simplified(const Step& s) {
  switch (s.function) {
    case Function::copy:
      return s.a;
    case Function::neg:
      if (const Step* inner = step(s.a); inner != nullptr && inner->function == Function::neg)
        return inner->a;
      return is(s.a, 0) ? constant(0) : -1;
    case Function::add:
      return is(s.a, 0) ? s.b : is(s.b, 0) ? s.a : -1;
    case Function::subtract:
      return is(s.b, 0) ? s.a : is(s.a, 0) ? neg(s.b) : -1;
    case Function::multiply:
      if (is(s.a, 0) || is(s.b, 0)) return constant(0);
      return is(s.a, 1) ? s.b : is(s.b, 1) ? s.a : -1;
    case Function::divide:
      return is(s.a, 0) ? constant(0) : is(s.b, 1) ? s.a : -1;
    case Function::select:
      return s.b == s.c ? s.b : -1;
    default:
      return -1;
  }
}

ProgramWriter::Value ProgramWriter::apply(Function function, Value a, Value b, Value c) {
  const Step made{function, a, b, c, 0};
  bool folds = true;
  std::array<double, 3> values{};
  for (int i = 0; i < operand_count(function); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Value operand = operands(made)[at];
    require(operand >= 0 && operand < program_.inputs + static_cast<Value>(program_.steps.size()),
            "a program names a value that it does not have");
    const Step* maker = step(operand);
    folds &= maker != nullptr && maker->function == Function::constant;
    if (folds) values[at] = maker->value;
  }
  if (folds) return constant(static_cast<float>(evaluate(function, values[0], values[1], values[2])));
  if (const Value known = simplified(made); known >= 0) return known;
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    if (program_.steps[i].function != Function::constant && program_.steps[i] == made) {
      return program_.inputs + static_cast<Value>(i);
    }
  }
  program_.steps.push_back(made);
  return program_.inputs + static_cast<Value>(program_.steps.size()) - 1;
}

std::vector<ProgramWriter::Value> ProgramWriter::insert(const Program& program,
                                                        const std::vector<Value>& inputs) {
  std::vector<Value> values = inputs;
  const auto of = [&](Value v) { return v < 0 ? v : values[static_cast<std::size_t>(v)]; };
  for (const Step& s : program.steps) {
    values.push_back(s.function == Function::constant ? constant(s.value)
                                                      : apply(s.function, of(s.a), of(s.b), of(s.c)));
  }
  std::vector<Value> outputs;
  for (const Value output : program.outputs) outputs.push_back(of(output));
  return outputs;
}

Program ProgramWriter::finish(const std::vector<Value>& outputs) const {
  const auto total = static_cast<std::size_t>(program_.inputs) + program_.steps.size();
  std::vector<bool> needed(total, false);
  for (const Value output : outputs) needed[static_cast<std::size_t>(output)] = true;
  for (std::size_t v = total; v-- > static_cast<std::size_t>(program_.inputs);) {
    if (!needed[v]) continue;
    for (const Value operand : operands(program_.steps[v - static_cast<std::size_t>(program_.inputs)])) {
      if (operand >= 0) needed[static_cast<std::size_t>(operand)] = true;
    }
  }
  Program result;
  result.inputs = program_.inputs;
  std::vector<Value> number(total, -1);
  for (Value v = 0; v < program_.inputs; ++v) number[static_cast<std::size_t>(v)] = v;
  const auto of = [&](Value v) { return v < 0 ? v : number[static_cast<std::size_t>(v)]; };
  for (std::size_t v = static_cast<std::size_t>(program_.inputs); v < total; ++v) {
    if (!needed[v]) continue;
    Step s = program_.steps[v - static_cast<std::size_t>(program_.inputs)];
    s.a = of(s.a), s.b = of(s.b), s.c = of(s.c);
    number[v] = result.inputs + static_cast<Value>(result.steps.size());
    result.steps.push_back(s);
  }
  for (const Value output : outputs) result.outputs.push_back(of(output));
  return result;
}

bool is_zero(const Program& program, std::size_t output) {
  const std::int32_t value = program.outputs[output];
  if (value < program.inputs) return false;
  const Step& step = program.steps[static_cast<std::size_t>(value - program.inputs)];
  return step.function == Function::constant && step.value == 0;
}

std::vector<bool> used_inputs(const Program& program) {
  std::vector<bool> used(static_cast<std::size_t>(program.inputs), false);
  const auto note = [&](std::int32_t value) {
    if (value >= 0 && value < program.inputs) used[static_cast<std::size_t>(value)] = true;
  };
  for (const Step& step : program.steps) {
    for (const std::int32_t operand : operands(step)) note(operand);
  }
  for (const std::int32_t output : program.outputs) note(output);
  return used;
}

std::int32_t values_held(const Program& program) {
  const auto total = static_cast<std::size_t>(program.inputs) + program.steps.size();
  std::vector<std::size_t> last(total, 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (const std::int32_t operand : operands(program.steps[s])) {
      if (operand >= 0) last[static_cast<std::size_t>(operand)] = s;
    }
  }
  for (const std::int32_t output : program.outputs)
    last[static_cast<std::size_t>(output)] = program.steps.size();
  std::int32_t constants = 0, live = 0, most = 0;
  std::vector<std::int32_t> ends(program.steps.size() + 1, 0);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (program.steps[s].function == Function::constant) {
      ++constants;
      continue;
    }
    most = std::max(most, ++live);
    ++ends[last[static_cast<std::size_t>(program.inputs) + s]];
    live -= ends[s];
  }
  // Outputs that are inputs are copied.
  return program.inputs + constants + most + static_cast<std::int32_t>(program.outputs.size());
}

double evaluate(Function function, double a, double b, double c) {
  switch (function) {
    case Function::constant:
      break;
    case Function::copy:
      return a;
    case Function::neg:
      return -a;
    case Function::abs:
      return std::fabs(a);
    case Function::sign:
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case Function::floor:
      return std::floor(a);
    case Function::ceil:
      return std::ceil(a);
    case Function::round:
      return std::nearbyint(a);
    case Function::truncate:
      return std::trunc(a);
    case Function::square_root:
      return std::sqrt(a);
    case Function::reciprocal_root:
      return 1 / std::sqrt(a);
    case Function::reciprocal:
      return 1 / a;
    case Function::exp:
      return std::exp(a);
    case Function::exp_minus_1:
      return std::expm1(a);
    case Function::log:
      return std::log(a);
    case Function::log_1_plus:
      return std::log1p(a);
    case Function::erf:
      return std::erf(a);
    case Function::sigmoid:
      return 1 / (1 + std::exp(-a));
    case Function::tanh:
      return std::tanh(a);
    case Function::sin:
      return std::sin(a);
    case Function::cos:
      return std::cos(a);
    case Function::tan:
      return std::tan(a);
    case Function::asin:
      return std::asin(a);
    case Function::acos:
      return std::acos(a);
    case Function::atan:
      return std::atan(a);
    case Function::sinh:
      return std::sinh(a);
    case Function::cosh:
      return std::cosh(a);
    case Function::asinh:
      return std::asinh(a);
    case Function::acosh:
      return std::acosh(a);
    case Function::atanh:
      return std::atanh(a);
    case Function::is_nan:
      return std::isnan(a) ? 1 : 0;
    case Function::is_infinite:
      return std::isinf(a) ? 1 : 0;
    case Function::add:
      return a + b;
    case Function::subtract:
      return a - b;
    case Function::multiply:
      return a * b;
    case Function::divide:
      return a / b;
    case Function::power:
      return std::pow(a, b);
    case Function::smaller:
      return a < b || std::isnan(a) ? a : b;
    case Function::larger:
      return a > b || std::isnan(a) ? a : b;
    case Function::remainder:
      c = std::fmod(a, b);
      return c != 0 && (c < 0) != (b < 0) ? c + b : c;
    case Function::less:
      return a < b ? 1 : 0;
    case Function::less_or_equal:
      return a <= b ? 1 : 0;
    case Function::equal:
      return a == b ? 1 : 0;
    case Function::select:
      return a != 0 ? b : c;
  }
  throw InternalError("a constant has no operands");
}

}  // namespace penstock::ir
