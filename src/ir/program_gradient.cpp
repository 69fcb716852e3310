#include <numbers>

#include "base/error.h"
#include "ir/program.h"

namespace penstock::ir {
namespace {

using Value = ProgramWriter::Value;

/// Walks the steps of a program backwards and adds up what each value contributes to the outputs.
class Gradients {
 public:
  Gradients(const Program& program, ProgramWriter& writer) : program_(program), w_(writer) {
    std::vector<Value> inputs;
    for (Value i = 0; i < program.inputs; ++i) inputs.push_back(i);
    Program all = program;
    all.outputs.clear();
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      all.outputs.push_back(program.inputs + static_cast<Value>(i));
    }
    values_ = inputs;
    for (const Value v : w_.insert(all, inputs)) values_.push_back(v);
    sums_.assign(values_.size(), w_.constant(0));
  }

  void seed(Value output, Value gradient) { give(output, gradient); }

  void run() {
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
      const Step& step = program_.steps[i];
      const Value value = program_.inputs + static_cast<Value>(i);
      g_ = sums_[at(value)];
      if (w_.is(g_, 0) || step.function == Function::constant) continue;
      y_ = values_[at(value)];
      a_ = of(step.a), b_ = of(step.b), c_ = of(step.c);
      backward(step);
    }
  }

  Value sum(Value value) const { return sums_[at(value)]; }

 private:
  static std::size_t at(Value v) { return static_cast<std::size_t>(v); }
  Value of(Value v) const { return v < 0 ? v : values_[at(v)]; }
  void give(Value to, Value gradient) { sums_[at(to)] = w_.add(sums_[at(to)], gradient); }
  Value one() { return w_.constant(1); }
  Value square(Value v) { return w_.multiply(v, v); }
  Value root(Value v) { return w_.apply(Function::square_root, v); }

  /// The slope of a function of one operand, from the operand a and the result y.
  Value slope(Function function) {
    switch (function) {
      case Function::copy:
        return one();
      case Function::neg:
        return w_.constant(-1);
      case Function::abs:
        return w_.apply(Function::sign, a_);
      case Function::square_root:
        return w_.divide(w_.constant(0.5F), y_);
      case Function::reciprocal_root:
        return w_.multiply(w_.multiply(y_, square(y_)), -0.5F);
      case Function::reciprocal:
        return w_.neg(square(y_));
      case Function::exp:
        return y_;
      case Function::exp_minus_1:
        return w_.add(y_, one());
      case Function::log:
        return w_.apply(Function::reciprocal, a_);
      case Function::log_1_plus:
        return w_.apply(Function::reciprocal, w_.add(a_, one()));
      case Function::erf:
        return w_.multiply(w_.apply(Function::exp, w_.neg(square(a_))),
                           static_cast<float>(2 * std::numbers::inv_sqrtpi));
      case Function::sigmoid:
        return w_.multiply(y_, w_.subtract(one(), y_));
      case Function::tanh:
        return w_.subtract(one(), square(y_));
      case Function::sin:
        return w_.apply(Function::cos, a_);
      case Function::cos:
        return w_.neg(w_.apply(Function::sin, a_));
      case Function::tan:
        return w_.add(one(), square(y_));
      case Function::asin:
        return w_.apply(Function::reciprocal_root, w_.subtract(one(), square(a_)));
      case Function::acos:
        return w_.neg(w_.apply(Function::reciprocal_root, w_.subtract(one(), square(a_))));
      case Function::atan:
        return w_.apply(Function::reciprocal, w_.add(one(), square(a_)));
      case Function::sinh:
        return w_.apply(Function::cosh, a_);
      case Function::cosh:
        return w_.apply(Function::sinh, a_);
      case Function::asinh:
        return w_.apply(Function::reciprocal_root, w_.add(square(a_), one()));
      case Function::acosh:
        return w_.apply(Function::reciprocal_root, w_.subtract(square(a_), one()));
      case Function::atanh:
        return w_.apply(Function::reciprocal, w_.subtract(one(), square(a_)));
      default:  // steps: flat wherever they have a slope
        return w_.constant(0);
    }
  }

  /// Of smaller and larger the operand that was chosen takes the gradient. Equal ones take half each; a
  /// value that is clipped takes all of it at the bound.
  void choose(const Step& step) {
    const bool larger = step.function == Function::larger;
    const Value zero = w_.constant(0);
    const auto wins = [&](Function comparison, Value x, Value y) {
      return larger ? w_.apply(comparison, y, x) : w_.apply(comparison, x, y);
    };
    if (is_constant(step.a) || is_constant(step.b)) {
      const bool a_varies = is_constant(step.b);
      const Value x = a_varies ? a_ : b_;
      const Value bound = a_varies ? b_ : a_;
      give(a_varies ? step.a : step.b, w_.select(wins(Function::less_or_equal, x, bound), g_, zero));
      return;
    }
    const Value half = w_.multiply(g_, 0.5F);
    const Value same = w_.apply(Function::equal, a_, b_);
    const Value a_wins = wins(Function::less, a_, b_);
    give(step.a, w_.select(same, half, w_.select(a_wins, g_, zero)));
    give(step.b, w_.select(same, half, w_.select(a_wins, zero, g_)));
  }

  bool is_constant(Value v) const {
    return v >= program_.inputs && program_.steps[at(v - program_.inputs)].function == Function::constant;
  }

  void backward(const Step& step) {
    switch (step.function) {
      case Function::add:
        give(step.a, g_);
        give(step.b, g_);
        return;
      case Function::subtract:
        give(step.a, g_);
        give(step.b, w_.neg(g_));
        return;
      case Function::multiply:
        give(step.a, w_.multiply(g_, b_));
        give(step.b, w_.multiply(g_, a_));
        return;
      case Function::divide: {
        const Value part = w_.divide(g_, b_);
        give(step.a, part);
        give(step.b, w_.neg(w_.multiply(part, y_)));
        return;
      }
      case Function::power: {
        const Value below = w_.apply(Function::power, a_, w_.subtract(b_, one()));
        give(step.a, w_.multiply(g_, w_.multiply(b_, below)));
        // 0^b is flat in b for b > 0, where a log(a) would be -inf * 0.
        const Value zero = w_.constant(0);
        const Value slope = w_.multiply(y_, w_.apply(Function::log, a_));
        if (!is_constant(step.b))
          give(step.b, w_.multiply(g_, w_.select(w_.apply(Function::equal, a_, zero), zero, slope)));
        return;
      }
      case Function::smaller:
      case Function::larger:
        return choose(step);
      case Function::remainder:
        give(step.a, g_);
        give(step.b, w_.neg(w_.multiply(g_, w_.apply(Function::floor, w_.divide(a_, b_)))));
        return;
      case Function::less:
      case Function::less_or_equal:
      case Function::equal:
        return;
      case Function::select: {
        const Value zero = w_.constant(0);
        give(step.b, w_.select(a_, g_, zero));
        give(step.c, w_.select(a_, zero, g_));
        return;
      }
      default:
        require(operand_count(step.function) == 1, "a function has no gradient");
        give(step.a, w_.multiply(g_, slope(step.function)));
    }
  }

  const Program& program_;
  ProgramWriter& w_;
  std::vector<Value> values_;  ///< by value of the program: the same value in the gradients' program
  std::vector<Value> sums_;    ///< its gradient so far
  Value g_ = -1, y_ = -1, a_ = -1, b_ = -1, c_ = -1;  ///< of the step at hand
};

}  // namespace

Program gradient_of(const Program& program, const std::vector<std::int32_t>& of_inputs) {
  const auto outputs = static_cast<std::int32_t>(program.outputs.size());
  ProgramWriter writer(program.inputs + outputs);
  Gradients gradients(program, writer);
  for (std::int32_t i = 0; i < outputs; ++i) {
    gradients.seed(program.outputs[static_cast<std::size_t>(i)], program.inputs + i);
  }
  gradients.run();
  std::vector<Value> results;
  for (const std::int32_t input : of_inputs) results.push_back(gradients.sum(input));
  return writer.finish(results);
}

}  // namespace penstock::ir
