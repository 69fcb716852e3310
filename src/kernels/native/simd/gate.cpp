#include "kernels/native/rows.h"
#include "kernels/native/simd/text_loops.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// A function and its slope at x.
struct Gate {
  F8 value, slope;
};

[[gnu::always_inline]] inline Gate gate_of(GateFunction function, F8 x) {
  if (function == GateFunction::silu) {
    const F8 sigmoid = sigmoid8(x);
    return {x * sigmoid, sigmoid * (1.0F + x * (1.0F - sigmoid))};
  }
  if (function == GateFunction::gelu_tanh) {
    // 0.5 (1 + tanh(u)) is the logistic function of 2 u.
    constexpr float kRoot = 0.7978845608F;
    constexpr float kCube = 0.044715F;
    const F8 square = x * x;
    const F8 half = sigmoid8(2.0F * kRoot * x * (1.0F + kCube * square));
    const F8 inner = 2.0F * kRoot * (1.0F + 3.0F * kCube * square);
    return {x * half, half + x * half * (1.0F - half) * inner};
  }
  const F8 half = normal_share8(x);
  const F8 density = 0.3989422804F * exp8(-0.5F * x * x);
  return {x * half, half + x * density};
}

template <typename Work>
void for_all_eights(std::int64_t count, const Work& work) {
#pragma omp parallel if (count > kSerial)
  {
    const Share share = my_share(count, 2 * kLanes);
    std::int64_t i = share.begin;
    for (; i + kLanes <= share.end; i += kLanes) work(i, kLanes);
    if (i < share.end) work(i, share.end - i);
  }
}

}  // namespace

void gate(GateFunction function, std::int64_t count, const float* a, const float* b, float* y) {
  for_all_eights(count, [=](std::int64_t i, std::int64_t n) {
    put(y + i, gate_of(function, take(a + i, n)).value * take(b + i, n), n);
  });
}

void gate_backward(GateFunction function, std::int64_t count, const float* a, const float* b, const float* dy,
                   float* da, float* db) {
  for_all_eights(count, [=](std::int64_t i, std::int64_t n) {
    const Gate at = gate_of(function, take(a + i, n));
    const F8 gradient = take(dy + i, n);
    const F8 other = take(b + i, n);
    put(da + i, gradient * other * at.slope, n);
    put(db + i, gradient * at.value, n);
  });
}

void gelu(GateFunction function, std::int64_t count, const float* x, float* y) {
  for_all_eights(
      count, [=](std::int64_t i, std::int64_t n) { put(y + i, gate_of(function, take(x + i, n)).value, n); });
}

void gelu_backward(GateFunction function, std::int64_t count, const float* x, const float* dy, float* dx) {
  for_all_eights(count, [=](std::int64_t i, std::int64_t n) {
    put(dx + i, take(dy + i, n) * gate_of(function, take(x + i, n)).slope, n);
  });
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
