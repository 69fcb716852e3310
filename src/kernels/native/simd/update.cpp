#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void sgd(const SgdStep& step) {
  const F8 rate = broadcast(-step.learning_rate);
  const F8 momentum = broadcast(step.momentum);
  const F8 decay = broadcast(step.weight_decay);
  const auto update = [&](F8& p, F8 gradient, F8& m) {
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

void adam(const AdamStep& step) {
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
    gradient += decay * p;
    m += weight1 * (gradient - m);
    v = v * beta2 + weight2 * gradient * gradient;
    p += size * m / (square_root(v) / root + epsilon);
  };
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
