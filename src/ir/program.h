#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::ir {

/// What one step of a program computes of its operands a, b, c, element by element.
// clang-format off
enum class Function : std::uint8_t {
  constant,  ///< Step::value
  // of a
  copy, neg, abs, sign, floor, ceil, round, truncate, square_root, reciprocal_root, reciprocal,
  exp, exp_minus_1, log, log_1_plus, erf, sigmoid, tanh, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh,
  is_nan, is_infinite,
  // of a and b
  add, subtract, multiply, divide, power, smaller, larger, remainder,  ///< remainder has the sign of b
  less, less_or_equal, equal,                                          ///< 1 or 0
  // of a, b and c
  select,  ///< a != 0 ? b : c
};
// clang-format on

inline constexpr int kFunctions = static_cast<int>(Function::select) + 1;

const char* function_name(Function function);
/// How many operands it takes: 0 to 3.
int operand_count(Function function);

/// One step of a program; a, b, c name values of the program: its inputs first, then its steps in order.
struct Step {
  Function function = Function::constant;
  std::int32_t a = -1, b = -1, c = -1;
  float value = 0;  ///< of a constant
  bool operator==(const Step&) const = default;
};

/// What is computed for each element on its own: a list of steps over a few inputs. Plain data.
struct Program {
  std::int32_t inputs = 1;
  std::vector<Step> steps;
  std::vector<std::int32_t> outputs;  ///< values
  bool operator==(const Program&) const = default;
};

/// "2 inputs; sigmoid 0; multiply 0 2 -> 3"
std::string program_text(const Program& program);

/// Writes programs: equal steps become one, steps on constants are done at once, and those that change
/// nothing are left out.
class ProgramWriter {
 public:
  using Value = std::int32_t;

  explicit ProgramWriter(std::int32_t inputs) { program_.inputs = inputs; }

  Value constant(float value);
  Value apply(Function function, Value a, Value b = -1, Value c = -1);
  Value neg(Value a) { return apply(Function::neg, a); }
  Value add(Value a, Value b) { return apply(Function::add, a, b); }
  Value subtract(Value a, Value b) { return apply(Function::subtract, a, b); }
  Value multiply(Value a, Value b) { return apply(Function::multiply, a, b); }
  Value multiply(Value a, float b) { return multiply(a, constant(b)); }
  Value divide(Value a, Value b) { return apply(Function::divide, a, b); }
  Value select(Value condition, Value yes, Value no) { return apply(Function::select, condition, yes, no); }
  /// The values that another program makes of `inputs`.
  std::vector<Value> insert(const Program& program, const std::vector<Value>& inputs);

  /// Whether it is this constant.
  bool is(Value value, float constant) const;
  /// The program with these outputs, without steps that none of them needs.
  Program finish(const std::vector<Value>& outputs) const;

 private:
  const Step* step(Value value) const;
  Value simplified(const Step& step);

  Program program_;
};

/// The program of the gradients, given that of the values: its inputs are the inputs of `program` and, behind
/// them, the gradients of its outputs; it has one output for each input in `of_inputs`. A gradient that is
/// zero whatever the inputs is the constant 0.
Program gradient_of(const Program& program, const std::vector<std::int32_t>& of_inputs);

/// Whether output `output` is the constant 0.
bool is_zero(const Program& program, std::size_t output);
/// Which inputs the steps or outputs name.
std::vector<bool> used_inputs(const Program& program);

/// How many values a kernel must hold at a time, inputs and constants included.
std::int32_t values_held(const Program& program);

/// The value of a function in double precision: what kernels are measured by.
double evaluate(Function function, double a, double b, double c);

}  // namespace penstock::ir
