#include "kernels/native/simd/functions8.h"
#include "kernels/native/simd/program_loops.h"
#include "kernels/native/simd/threads.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

constexpr std::int64_t kBlock = ProgramRun::kBlock;

struct Operands {
  float* to;
  const float* a;
  const float* b;
  const float* c;
  std::int64_t count;  ///< a multiple of eight
};

template <typename Op>
[[gnu::always_inline]] inline void each(const Operands& o, const Op& op) {
  for (std::int64_t i = 0; i < o.count; i += kLanes) store(o.to + i, op(load(o.a + i)));
}
template <typename Op>
[[gnu::always_inline]] inline void each2(const Operands& o, const Op& op) {
  for (std::int64_t i = 0; i < o.count; i += kLanes) store(o.to + i, op(load(o.a + i), load(o.b + i)));
}
template <typename Op>
[[gnu::always_inline]] inline void each_float(const Operands& o, const Op& op) {
  for (std::int64_t i = 0; i < o.count; ++i) o.to[i] = op(o.a[i]);
}

[[gnu::always_inline]] inline F8 flag(I8 condition) {
  return condition != 0 ? broadcast(1.0F) : F8{};
}

/// With the sign of b.
float signed_remainder(float a, float b) {
  const float rest = __builtin_fmodf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

void rare_step(ir::Function function, const Operands& o) {
  using enum ir::Function;
  switch (function) {
    case tan:
      return each_float(o, [](float v) { return __builtin_tanf(v); });
    case asin:
      return each_float(o, [](float v) { return __builtin_asinf(v); });
    case acos:
      return each_float(o, [](float v) { return __builtin_acosf(v); });
    case atan:
      return each_float(o, [](float v) { return __builtin_atanf(v); });
    case sinh:
      return each_float(o, [](float v) { return __builtin_sinhf(v); });
    case cosh:
      return each_float(o, [](float v) { return __builtin_coshf(v); });
    case asinh:
      return each_float(o, [](float v) { return __builtin_asinhf(v); });
    case acosh:
      return each_float(o, [](float v) { return __builtin_acoshf(v); });
    case atanh:
      return each_float(o, [](float v) { return __builtin_atanhf(v); });
    case power:
      for (std::int64_t i = 0; i < o.count; ++i) o.to[i] = __builtin_powf(o.a[i], o.b[i]);
      return;
    case ir::Function::remainder:
      for (std::int64_t i = 0; i < o.count; ++i) o.to[i] = signed_remainder(o.a[i], o.b[i]);
      return;
    default:
      return;
  }
}

void run_step(ir::Function function, const Operands& o) {
  using enum ir::Function;
  switch (function) {
    case copy:
      return each(o, [](F8 v) { return v; });
    case neg:
      return each(o, [](F8 v) { return -v; });
    case abs:
      return each(o, [](F8 v) { return abs8(v); });
    case sign:
      return each(o, [](F8 v) { return v > 0 ? broadcast(1.0F) : v < 0 ? broadcast(-1.0F) : v; });
    case floor:
      return each(o, [](F8 v) { return floor8(v); });
    case ceil:
      return each(o, [](F8 v) { return ceil8(v); });
    case round:
      return each(o, [](F8 v) { return round8(v); });
    case truncate:
      return each(o, [](F8 v) { return truncate8(v); });
    case ir::Function::square_root:
      return each(o, [](F8 v) { return PENSTOCK_SIMD::square_root(v); });
    case reciprocal_root:
      return each(o, [](F8 v) { return 1.0F / PENSTOCK_SIMD::square_root(v); });
    case reciprocal:
      return each(o, [](F8 v) { return 1.0F / v; });
    case exp:
      return each(o, [](F8 v) { return exp8(v); });
    case exp_minus_1:
      return each(o, [](F8 v) { return exp_minus_1_8(v); });
    case log:
      return each(o, [](F8 v) { return log8(v); });
    case log_1_plus:
      return each(o, [](F8 v) { return log_1_plus_8(v); });
    case erf:
      return each(o, [](F8 v) { return erf8(v); });
    case sigmoid:
      return each(o, [](F8 v) { return sigmoid8(v); });
    case tanh:
      return each(o, [](F8 v) { return tanh8(v); });
    case sin:
      return each(o, [](F8 v) { return sine8(v, 0); });
    case cos:
      return each(o, [](F8 v) { return sine8(v, 1); });
    case is_nan:
      return each(o, [](F8 v) { return flag(is_nan8(v)); });
    case is_infinite:
      return each(o, [](F8 v) { return flag(abs8(v) == __builtin_inff()); });
    case ir::Function::add:
      return each2(o, [](F8 a, F8 b) { return a + b; });
    case subtract:
      return each2(o, [](F8 a, F8 b) { return a - b; });
    case ir::Function::multiply:
      return each2(o, [](F8 a, F8 b) { return a * b; });
    case divide:
      return each2(o, [](F8 a, F8 b) { return a / b; });
    case ir::Function::smaller:
      return each2(o, [](F8 a, F8 b) { return ((a < b) | is_nan8(a)) ? a : b; });
    case ir::Function::larger:
      return each2(o, [](F8 a, F8 b) { return ((a > b) | is_nan8(a)) ? a : b; });
    case less:
      return each2(o, [](F8 a, F8 b) { return flag(a < b); });
    case less_or_equal:
      return each2(o, [](F8 a, F8 b) { return flag(a <= b); });
    case equal:
      return each2(o, [](F8 a, F8 b) { return flag(a == b); });
    case select:
      for (std::int64_t i = 0; i < o.count; i += kLanes)
        store(o.to + i, load(o.a + i) != 0 ? load(o.b + i) : load(o.c + i));
      return;
    default:
      return rare_step(function, o);
  }
}

[[gnu::always_inline]] inline float element(const void* x, ir::DType dtype, std::int64_t i) {
  return dtype == ir::DType::f32   ? static_cast<const float*>(x)[i]
         : dtype == ir::DType::s32 ? static_cast<float>(static_cast<const std::int32_t*>(x)[i])
                                   : static_cast<float>(static_cast<const std::uint8_t*>(x)[i]);
}

/// `count` elements of an input from x[from] on, `stride` apart.
void fetch(const void* x, ir::DType dtype, std::int64_t from, std::int64_t stride, std::int64_t count,
           float* to) {
  if (stride == 0) {
    const float value = element(x, dtype, from);
    for (std::int64_t i = 0; i < count; ++i) to[i] = value;
  } else if (dtype == ir::DType::f32 && stride == 1) {
    const float* floats = static_cast<const float*>(x) + from;
    for (std::int64_t i = 0; i < count; ++i) to[i] = floats[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = element(x, dtype, from + i * stride);
  }
}

/// The input's elements that belong to the outputs' elements [begin, begin + count).
void expand(const ProgramInput& input, const void* x, std::int64_t begin, std::int64_t count, float* to) {
  if (input.whole) return fetch(x, input.dtype, begin, 1, count, to);
  std::int64_t place[ProgramInput::kMaxDims] = {};
  std::int64_t from = 0;
  std::int64_t rest = begin;
  for (int d = input.dims; d-- > 0;) {
    place[d] = rest % input.extents[d];
    rest /= input.extents[d];
    from += place[d] * input.strides[d];
  }
  const int inner = input.dims - 1;
  while (count > 0) {
    const std::int64_t run = PENSTOCK_SIMD::smaller(count, input.extents[inner] - place[inner]);
    fetch(x, input.dtype, from, input.strides[inner], run, to);
    to += run;
    count -= run;
    place[inner] += run;
    from += run * input.strides[inner];
    for (int d = inner; d > 0 && place[d] == input.extents[d]; --d) {
      from -= place[d] * input.strides[d];
      place[d] = 0;
      ++place[d - 1];
      from += input.strides[d - 1];
    }
  }
}

void keep(const float* values, ir::DType dtype, std::int64_t begin, std::int64_t count, void* y,
          bool streaming) {
  if (dtype == ir::DType::f32) {
    float* floats = static_cast<float*>(y) + begin;
    const std::int64_t whole = count / kLanes * kLanes;
    if (streaming) {
      for (std::int64_t i = 0; i < whole; i += kLanes) stream(floats + i, load(values + i));
    } else {
      for (std::int64_t i = 0; i < whole; i += kLanes) store(floats + i, load(values + i));
    }
    for (std::int64_t i = whole; i < count; ++i) floats[i] = values[i];
  } else if (dtype == ir::DType::s32) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::int32_t*>(y)[begin + i] = static_cast<std::int32_t>(values[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::uint8_t*>(y)[begin + i] = values[i] != 0 ? 1 : 0;
  }
}

/// Whether no input lies where output `o` is written.
bool is_apart(const ProgramRun& run, int o) {
  for (int i = 0; i < run.input_count; ++i) {
    if (run.in[i] == run.out[o]) return false;
  }
  return true;
}

}  // namespace

void run_program(const ProgramRun& run) {
  bool streams[ProgramRun::kMaxInputs] = {};
  for (int o = 0; o < run.output_count; ++o) {
    streams[o] = run.output_types[o] == ir::DType::f32 && is_apart(run, o) &&
                 worth_streaming(static_cast<const float*>(run.out[o]), run.count);
  }
#pragma omp parallel if (run.count > kSerial)
  {
    alignas(64) float buffers[ProgramRun::kMaxBuffers][kBlock];
    const float* at[ProgramRun::kMaxInputs + ProgramRun::kMaxBuffers];
    for (int i = 0; i < ProgramRun::kMaxBuffers; ++i) at[run.input_count + i] = buffers[i];
    const auto buffer = [&](int place) { return buffers[place - run.input_count]; };
    for (int i = 0; i < run.constant_count; ++i) {
      float* to = buffer(run.constants[i].to);
      for (std::int64_t k = 0; k < kBlock; ++k) to[k] = run.constants[i].value;
    }
    const Share share = my_share(run.count, kBlock);
    for (std::int64_t begin = share.begin; begin < share.end; begin += kBlock) {
      const std::int64_t count = PENSTOCK_SIMD::smaller(kBlock, share.end - begin);
      const std::int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
      // Buffers from the end of the list hold inputs that cannot be read where they lie.
      int last = ProgramRun::kMaxBuffers;
      for (int i = 0; i < run.input_count; ++i) {
        const ProgramInput& input = run.inputs[i];
        if (input.whole && input.dtype == ir::DType::f32 && padded == count) {
          at[i] = static_cast<const float*>(run.in[i]) + begin;
          continue;
        }
        float* to = buffers[--last];
        expand(input, run.in[i], begin, count, to);
        for (std::int64_t k = count; k < padded; ++k) to[k] = 0;
        at[i] = to;
      }
      for (int s = 0; s < run.step_count; ++s) {
        const ProgramStep& step = run.steps[s];
        run_step(step.function, {buffer(step.to), at[step.a], at[step.b], at[step.c], padded});
      }
      for (int o = 0; o < run.output_count; ++o) {
        keep(at[run.outputs[o]], run.output_types[o], begin, count, run.out[o], streams[o]);
      }
    }
    finish_streaming();
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
