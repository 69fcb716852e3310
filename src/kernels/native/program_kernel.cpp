#include "kernels/native/program_kernel.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/functions.h"
#include "kernels/native/simd/program_table.h"
#include "kernels/native/simd/text_table.h"
#include "kernels/native/wide_table.h"

namespace penstock::kernels::native {
namespace {

/// The program with a place for each value. A buffer is used again once nobody needs what is in it.
struct Compiled {
  std::vector<ProgramStep> constants, steps;
  std::vector<ProgramInput> inputs;
  std::vector<std::int16_t> outputs;
  std::vector<ir::DType> output_types;
  std::int64_t count = 0;
};

class Compiler {
 public:
  explicit Compiler(const ir::Program& program)
      : program_(program), last_use_(values(), -1), place_(values(), -1) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      for (const std::int32_t v : {program.steps[s].a, program.steps[s].b, program.steps[s].c}) {
        if (v >= 0) last_use_[at(v)] = static_cast<std::int64_t>(s);
      }
    }
    for (const std::int32_t v : program.outputs)
      last_use_[at(v)] = static_cast<std::int64_t>(program.steps.size());
    for (std::int32_t v = 0; v < program.inputs; ++v) place_[at(v)] = static_cast<std::int16_t>(v);
  }

  void compile(Compiled& to) {
    // Constants are filled in once, so their buffers are theirs alone.
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const ir::Step& step = program_.steps[s];
      if (step.function != ir::Function::constant) continue;
      const std::int16_t place = place_[at(program_.inputs) + s] = take();
      to.constants.push_back({step.function, place, 0, 0, 0, step.value});
    }
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const ir::Step& step = program_.steps[s];
      const std::size_t value = at(program_.inputs) + s;
      if (step.function == ir::Function::constant) continue;
      // The result may take the buffer of an operand that is needed for the last time: steps read an element
      // before they write it.
      for (const std::int32_t v : {step.a, step.b, step.c}) give_back(v, static_cast<std::int64_t>(s));
      place_[value] = take();
      to.steps.push_back({step.function, place_[value], of(step.a), of(step.b), of(step.c), 0});
    }
    for (const std::int32_t output : program_.outputs) to.outputs.push_back(output_place(output, to));
  }

 private:
  static std::size_t at(std::int32_t v) { return static_cast<std::size_t>(v); }
  std::size_t values() const { return at(program_.inputs) + program_.steps.size(); }
  std::int16_t of(std::int32_t v) const { return v < 0 ? std::int16_t{0} : place_[at(v)]; }

  /// An output that is an input is copied, because the memory of that input may be written before.
  std::int16_t output_place(std::int32_t output, Compiled& to) {
    if (output >= program_.inputs) return of(output);
    const std::int16_t place = take();
    to.steps.push_back({ir::Function::copy, place, of(output), 0, 0, 0});
    return place;
  }

  std::int16_t take() {
    std::int16_t buffer = buffers_;
    if (!free_.empty()) {
      buffer = free_.back();
      free_.pop_back();
    } else {
      ++buffers_;
    }
    require(buffers_ + program_.inputs <= ProgramRun::kMaxBuffers, "a program has too many values at a time");
    return static_cast<std::int16_t>(program_.inputs + buffer);
  }

  void give_back(std::int32_t v, std::int64_t step) {
    if (v < program_.inputs || last_use_[at(v)] != step) return;
    if (program_.steps[at(v - program_.inputs)].function == ir::Function::constant) return;
    last_use_[at(v)] = -1;  // once, though it may be two operands
    free_.push_back(static_cast<std::int16_t>(place_[at(v)] - program_.inputs));
  }

  const ir::Program& program_;
  std::vector<std::int64_t> last_use_;
  std::vector<std::int16_t> place_;
  std::vector<std::int16_t> free_;
  std::int16_t buffers_ = 0;
};

/// A program that has a loop of its own, in which all steps go on in registers.
struct Curve {
  GateFunction function;
  bool gradient;  ///< of x and dy
};

std::optional<Curve> curve_of(const ir::Program& program) {
  constexpr std::pair<const char*, GateFunction> kNames[] = {
      {"gelu", GateFunction::gelu}, {"gelu_tanh", GateFunction::gelu_tanh}, {"silu", GateFunction::silu}};
  for (const auto& [name, function] : kNames) {
    const ir::Program value = ir::named_function(name);
    if (program == value) return Curve{function, false};
    if (program == ir::gradient_of(value, {0})) return Curve{function, true};
  }
  return std::nullopt;
}

std::shared_ptr<const Kernel> make_curve(const Curve& curve, std::int64_t count) {
  if (curve.gradient) {
    return make_kernel(
        [=](const KernelArgs& args) {
          text_simd().gelu_backward(curve.function, count, floats_in(args, 0), floats_in(args, 1),
                                    floats_out(args, 0));
        },
        {{0, 0}, {0, 1}});
  }
  return make_kernel(
      [=](const KernelArgs& args) {
        text_simd().gelu(curve.function, count, floats_in(args, 0), floats_out(args, 0));
      },
      {{0, 0}});
}

bool is_plain(const ProgramInput& input) {
  return input.whole && input.dtype == ir::DType::f32;
}

}  // namespace

std::shared_ptr<const Kernel> make_program(const ir::Program& program, std::vector<ProgramInput> inputs,
                                           const std::vector<ir::DType>& output_types, std::int64_t count) {
  require(program.inputs <= ProgramRun::kMaxInputs && program.outputs.size() <= ProgramRun::kMaxInputs,
          "a program has too many inputs or outputs");
  const bool plain = std::ranges::all_of(inputs, is_plain) && output_types.front() == ir::DType::f32;
  // Only there are these loops faster than the steps one by one.
  if (const auto curve = curve_of(program); curve && plain && wide() != nullptr)
    return make_curve(*curve, count);
  const auto compiled = std::make_shared<Compiled>();
  Compiler(program).compile(*compiled);
  Overwrites overwrites;
  for (std::size_t o = 0; o < output_types.size(); ++o) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].whole && inputs[i].dtype == output_types[o]) overwrites.emplace_back(o, i);
    }
  }
  compiled->inputs = std::move(inputs);
  compiled->output_types = output_types;
  compiled->count = count;
  return make_kernel(
      [compiled](const KernelArgs& args) {
        const Compiled& c = *compiled;
        ProgramRun run;
        run.count = c.count;
        run.constants = c.constants.data();
        run.constant_count = static_cast<int>(c.constants.size());
        run.steps = c.steps.data();
        run.step_count = static_cast<int>(c.steps.size());
        run.inputs = c.inputs.data();
        run.input_count = static_cast<int>(c.inputs.size());
        run.in = args.inputs.data();
        run.outputs = c.outputs.data();
        run.output_types = c.output_types.data();
        run.output_count = static_cast<int>(c.outputs.size());
        run.out = args.outputs.data();
        program_simd().run_program(run);
      },
      std::move(overwrites));
}

std::shared_ptr<const Kernel> make_reduce(const ReduceRun& run) {
  const std::int64_t scratch_bytes =
      run.parts > 1 ? run.parts * run.outputs * static_cast<std::int64_t>(sizeof(double)) : 0;
  return make_kernel(
      [run](const KernelArgs& args) {
        ReduceRun now = run;
        now.x = floats_in(args, 0);
        now.y = floats_out(args, 0);
        now.partial = static_cast<double*>(args.scratch);
        program_simd().reduce(now);
      },
      {}, scratch_bytes);
}

}  // namespace penstock::kernels::native
