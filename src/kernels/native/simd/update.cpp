#include "kernels/native/simd/philox8.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void sgd(const SgdStep& step) {
  const bool scaled = step.gradient_scale != 1;
  const F8 scale = broadcast(step.gradient_scale);
  const F8 rate = broadcast(-step.learning_rate);
  const F8 momentum = broadcast(step.momentum);
  const F8 decay = broadcast(step.weight_decay);
  const auto update = [&](F8& p, F8 gradient, F8& m) {
    if (scaled) gradient = gradient * scale;
    gradient += decay * p;
    if (step.m != nullptr) {
      m = momentum * m + gradient;
      gradient = step.nesterov ? gradient + momentum * m : m;
    }
    p += rate * gradient;
  };
#pragma omp parallel if (step.count > kSerial)
  {
    const Share share = my_share(step.count, 2 * kLanes);
    std::int64_t i = share.begin;
    for (; i + kLanes <= share.end; i += kLanes) {
      F8 p = load(step.p + i);
      F8 m = step.m != nullptr ? load(step.m + i) : F8{};
      update(p, load(step.gradient + i), m);
      store(step.p_out + i, p);
      if (step.m != nullptr) store(step.m_out + i, m);
    }
    if (i < share.end) {
      const std::int64_t rest = share.end - i;
      F8 p = load_part(step.p + i, rest);
      F8 m = step.m != nullptr ? load_part(step.m + i, rest) : F8{};
      update(p, load_part(step.gradient + i, rest), m);
      store_part(step.p_out + i, p, rest);
      if (step.m != nullptr) store_part(step.m_out + i, m, rest);
    }
  }
}

namespace {

using U8 = std::uint32_t __attribute__((vector_size(32)));
using Halves = std::uint16_t __attribute__((vector_size(16)));
using HalvesUnaligned = std::uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

[[gnu::always_inline]] inline F8 load16(const std::uint16_t* p, std::int64_t count) {
  Halves halves{};
  if (count == kLanes) {
    halves = *reinterpret_cast<const HalvesUnaligned*>(p);
  } else {
    for (std::int64_t i = 0; i < count; ++i) halves[i] = p[i];
  }
  return reinterpret_cast<F8>(__builtin_convertvector(halves, U8) << 16);
}

/// Rounds up with a chance that is the share of the way to the next bfloat16: `random` below 2^16.
[[gnu::always_inline]] inline void store16(std::uint16_t* p, F8 v, U8 random, std::int64_t count) {
  const U8 rounded = (reinterpret_cast<U8>(v) + random) >> 16;
  const Halves halves = __builtin_convertvector(rounded, Halves);
  if (count == kLanes) {
    *reinterpret_cast<HalvesUnaligned*>(p) = halves;
  } else {
    for (std::int64_t i = 0; i < count; ++i) p[i] = halves[i];
  }
}

/// Moments in bfloat16: each element draws one word, one half of it for each moment.
template <typename Update>
void adam16(const AdamStep& step, const Update& update) {
  // Three vectors at a time: wherever they begin in a block of four, eight blocks cover them.
  constexpr std::int64_t kTogether = 3 * kLanes;
  const RandomKey random{step.random[0], step.random[1], step.random[2], step.random[3]};
#pragma omp parallel if (step.count > kSerial)
  {
    const Share share = my_share(step.count, 2 * kLanes);
    std::uint32_t words[32];
    for (std::int64_t begin = share.begin; begin < share.end; begin += kTogether) {
      const std::uint64_t element = step.first_element + static_cast<std::uint64_t>(begin);
      draw_blocks(random, element / 4, words);
      const std::uint32_t* word = words + element % 4;
      const std::int64_t end = begin + kTogether < share.end ? begin + kTogether : share.end;
      for (std::int64_t i = begin; i < end; i += kLanes, word += kLanes) {
        const std::int64_t count = end - i < kLanes ? end - i : kLanes;
        F8 p = take(step.p + i, count);
        F8 m = load16(step.m16 + i, count);
        F8 v = load16(step.v16 + i, count);
        update(p, take(step.gradient + i, count), m, v);
        U8 drawn{};
        for (std::int64_t k = 0; k < kLanes; ++k) drawn[k] = word[k];
        put(step.p_out + i, p, count);
        store16(step.m16_out + i, m, drawn & 0xFFFFU, count);
        store16(step.v16_out + i, v, drawn >> 16, count);
      }
    }
  }
}

}  // namespace

void adam(const AdamStep& step) {
  const bool scaled = step.gradient_scale != 1;
  const F8 scale = broadcast(step.gradient_scale);
  const F8 weight1 = broadcast(1 - step.beta1);
  const F8 beta2 = broadcast(step.beta2);
  const F8 weight2 = broadcast(1 - step.beta2);
  const F8 decay = broadcast(step.weight_decay);
  const F8 keep = broadcast(step.keep);
  const F8 size = broadcast(-step.step_size);
  const F8 root = broadcast(step.correction2_root);
  const F8 epsilon = broadcast(step.epsilon);
  const auto update = [&](F8& p, F8 gradient, F8& m, F8& v) {
    p *= keep;
    if (scaled) gradient = gradient * scale;
    gradient += decay * p;
    m += weight1 * (gradient - m);
    v = v * beta2 + weight2 * gradient * gradient;
    p += size * m / (square_root(v) / root + epsilon);
  };
  if (step.m16 != nullptr) return adam16(step, update);
#pragma omp parallel if (step.count > kSerial)
  {
    const Share share = my_share(step.count, 2 * kLanes);
    std::int64_t i = share.begin;
    for (; i + kLanes <= share.end; i += kLanes) {
      F8 p = load(step.p + i);
      F8 m = load(step.m + i);
      F8 v = load(step.v + i);
      update(p, load(step.gradient + i), m, v);
      store(step.p_out + i, p);
      store(step.m_out + i, m);
      store(step.v_out + i, v);
    }
    if (i < share.end) {
      const std::int64_t rest = share.end - i;
      F8 p = load_part(step.p + i, rest);
      F8 m = load_part(step.m + i, rest);
      F8 v = load_part(step.v + i, rest);
      update(p, load_part(step.gradient + i, rest), m, v);
      store_part(step.p_out + i, p, rest);
      store_part(step.m_out + i, m, rest);
      store_part(step.v_out + i, v, rest);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
