#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// y[i] = op(i'th vectors of the inputs) over the threads.
template <typename Op>
void for_each_vector(std::int64_t count, float* y, bool reads_y, const Op& op) {
  const bool streaming = !reads_y && worth_streaming(y, count);
#pragma omp parallel if (count > kSerial)
  {
    const Share share = my_share(count, 2 * kLanes);
    const std::int64_t whole = share.begin + (share.end - share.begin) / kLanes * kLanes;
    if (streaming) {
      for (std::int64_t i = share.begin; i < whole; i += kLanes) stream(y + i, op(i, kLanes));
      finish_streaming();
    } else {
      for (std::int64_t i = share.begin; i < whole; i += kLanes) store(y + i, op(i, kLanes));
    }
    if (whole < share.end) store_part(y + whole, op(whole, share.end - whole), share.end - whole);
  }
}

[[gnu::always_inline]] inline F8 take(const float* p, std::int64_t i, std::int64_t lanes) {
  return lanes == kLanes ? load(p + i) : load_part(p + i, lanes);
}

}  // namespace

void add(std::int64_t count, const float* a, const float* b, float* y) {
  for_each_vector(count, y, y == a || y == b,
                  [=](std::int64_t i, std::int64_t lanes) { return take(a, i, lanes) + take(b, i, lanes); });
}

void multiply(std::int64_t count, const float* a, const float* b, float* y) {
  for_each_vector(count, y, y == a || y == b,
                  [=](std::int64_t i, std::int64_t lanes) { return take(a, i, lanes) * take(b, i, lanes); });
}

void leaky_relu(std::int64_t count, float slope, const float* x, float* y) {
  const F8 factor = broadcast(slope);
  for_each_vector(count, y, y == x, [=](std::int64_t i, std::int64_t lanes) {
    const F8 v = take(x, i, lanes);
    return v < 0 ? v * factor : v;
  });
}

void leaky_relu_backward(std::int64_t count, float slope, const float* y, const float* dy, float* dx) {
  const F8 factor = broadcast(slope);
  for_each_vector(count, dx, dx == y || dx == dy, [=](std::int64_t i, std::int64_t lanes) {
    const F8 gradient = take(dy, i, lanes);
    return take(y, i, lanes) > 0 ? gradient : gradient * factor;
  });
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
