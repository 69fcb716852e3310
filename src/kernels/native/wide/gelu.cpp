#include "kernels/native/wide/loops.h"
#include "kernels/native/wide/vector_math16.h"

/// GELU and the like in one pass: all that lies between the input and the output stays in registers.
namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// A function and its slope at x.
struct Curve {
  F16 value, slope;
};

[[gnu::always_inline]] inline F16 sigmoid16(F16 x) {
  F16 power = x * -kLog2OfE;
  power = power > 128.0F ? broadcast16(128.0F) : power;
  return 1.0F / (1.0F + exp2_16(power));
}

/// The share of the normal distribution below x as normal_share8() has it; its density has the same
/// exponential.
[[gnu::always_inline]] inline Curve gelu16(F16 x) {
  const F16 z = (x < 0 ? -x : x) * 0.70710678F;
  const F16 t = 1.0F / (1.0F + 0.3275911F * z);
  F16 sum = broadcast16(1.061405429F);
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const F16 bell = exp2_16(x * x * (-0.5F * kLog2OfE));
  const F16 tail = 0.5F * sum * t * bell;
  const F16 share = x < 0 ? tail : 1.0F - tail;
  return {x * share, share + x * (0.3989422804F * bell)};
}

/// 0.5 (1 + tanh(u)) is the logistic function of 2 u.
[[gnu::always_inline]] inline Curve gelu_tanh16(F16 x) {
  constexpr float kRoot = 0.7978845608F;
  constexpr float kCube = 0.044715F;
  const F16 square = x * x;
  const F16 half = sigmoid16(2.0F * kRoot * x * (1.0F + kCube * square));
  const F16 inner = 2.0F * kRoot * (1.0F + 3.0F * kCube * square);
  return {x * half, half + x * half * (1.0F - half) * inner};
}

[[gnu::always_inline]] inline Curve silu16(F16 x) {
  const F16 sigmoid = sigmoid16(x);
  return {x * sigmoid, sigmoid * (1.0F + x * (1.0F - sigmoid))};
}

/// y[i] = work(i, lanes) for all i; past the caches where y is large and `apart` from what is read.
template <typename Work>
[[gnu::always_inline]] inline void for_sixteens(std::int64_t count, float* y, bool apart, const Work& work) {
  const bool streaming = apart && worth_streaming(y, count);
#pragma omp parallel if (count > kSerial)
  {
    const Share share = my_share(count, kWide);
    std::int64_t i = share.begin;
    if (streaming) {
      for (; i + kWide <= share.end; i += kWide)
        _mm512_stream_ps(y + i, reinterpret_cast<__m512>(work(i, __mmask16{0xFFFF})));
      _mm_sfence();
    }
    for (; i + kWide <= share.end; i += kWide) store16(y + i, work(i, __mmask16{0xFFFF}));
    if (i < share.end) {
      const __mmask16 lanes = first_lanes16(share.end - i);
      store_lanes16(lanes, y + i, work(i, lanes));
    }
  }
}

/// Calls run() with the function of sixteen floats.
template <typename Run>
void with_curve(GateFunction function, const Run& run) {
  if (function == GateFunction::silu) return run([](F16 x) { return silu16(x); });
  if (function == GateFunction::gelu_tanh) return run([](F16 x) { return gelu_tanh16(x); });
  run([](F16 x) { return gelu16(x); });
}

}  // namespace

void gelu(GateFunction function, std::int64_t count, const float* x, float* y) {
  with_curve(function, [=](const auto& curve) {
    for_sixteens(count, y, x != y,
                 [=](std::int64_t i, __mmask16 lanes) { return curve(load_lanes16(lanes, x + i)).value; });
  });
}

void gelu_backward(GateFunction function, std::int64_t count, const float* x, const float* dy, float* dx) {
  with_curve(function, [=](const auto& curve) {
    for_sixteens(count, dx, x != dx && dy != dx, [=](std::int64_t i, __mmask16 lanes) {
      return load_lanes16(lanes, dy + i) * curve(load_lanes16(lanes, x + i)).slope;
    });
  });
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
