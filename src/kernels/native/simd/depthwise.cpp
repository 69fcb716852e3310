#include "kernels/native/simd/program_loops.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// The outputs of a row whose taps all lie within the image.
struct Inside {
  std::int64_t begin = 0, end = 0;
};

Inside inside(const DepthwiseGradient& c) {
  const std::int64_t reach = (c.kernel_width - 1) * c.dilation_width;
  Inside result;
  result.begin = smaller(c.out_width, (c.left + c.stride_width - 1) / c.stride_width);
  const std::int64_t room = c.in_width - 1 - reach + c.left;
  result.end = room < 0 ? 0 : smaller(c.out_width, room / c.stride_width + 1);
  result.end = larger(result.begin, result.end);
  return result;
}

/// One output beside the image's edge: only the taps that lie within.
void add_edge(const DepthwiseGradient& c, const float* x, const float* dy, std::int64_t ow, float* sums) {
  const F8 d = load(dy + ow * c.pixel);
  for (std::int64_t k = 0; k < c.kernel_width; ++k) {
    const std::int64_t iw = ow * c.stride_width + k * c.dilation_width - c.left;
    if (iw < 0 || iw >= c.in_width) continue;
    store(sums + k * kLanes, load(sums + k * kLanes) + d * load(x + iw * c.pixel));
  }
}

/// The sums of a row of taps stay in registers over a row of outputs.
template <int kTaps>
void add_row(const DepthwiseGradient& c, const Inside& in, const float* x, const float* dy, float* sums) {
  F8 acc[kTaps];
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) acc[k] = load(sums + k * kLanes);
  const std::int64_t pixel = c.pixel;
  const std::int64_t step = c.stride_width * pixel;
  const std::int64_t gap = c.dilation_width * pixel;
  const float* from = x + (in.begin * c.stride_width - c.left) * pixel;
  const float* d = dy + in.begin * pixel;
  for (std::int64_t ow = in.begin; ow < in.end; ++ow, from += step, d += pixel) {
    const F8 gradient = load(d);
#pragma GCC unroll 16
    for (int k = 0; k < kTaps; ++k) acc[k] += gradient * load(from + k * gap);
  }
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) store(sums + k * kLanes, acc[k]);
}

void add_any_row(const DepthwiseGradient& c, const Inside& in, const float* x, const float* dy, float* sums) {
  for (std::int64_t k = 0; k < c.kernel_width; ++k) {
    F8 acc = load(sums + k * kLanes);
    for (std::int64_t ow = in.begin; ow < in.end; ++ow) {
      const std::int64_t iw = ow * c.stride_width + k * c.dilation_width - c.left;
      acc += load(dy + ow * c.pixel) * load(x + iw * c.pixel);
    }
    store(sums + k * kLanes, acc);
  }
}

using Row = void (*)(const DepthwiseGradient&, const Inside&, const float*, const float*, float*);

Row row_of(std::int64_t taps) {
  switch (taps) {
    case 3:
      return add_row<3>;
    case 5:
      return add_row<5>;
    case 7:
      return add_row<7>;
    case 9:
      return add_row<9>;
    default:
      return add_any_row;
  }
}

void add_image(const DepthwiseGradient& c, const Inside& in, Row row, const float* x, const float* dy,
               float* sums, float* bias) {
  for (std::int64_t oh = 0; oh < c.out_height; ++oh) {
    const float* gradients = dy + oh * c.out_width * c.pixel;
    for (std::int64_t k = 0; k < c.kernel_height; ++k) {
      const std::int64_t ih = oh * c.stride_height + k * c.dilation_height - c.top;
      if (ih < 0 || ih >= c.in_height) continue;
      const float* pixels = x + ih * c.in_width * c.pixel;
      float* taps = sums + k * c.kernel_width * kLanes;
      for (std::int64_t ow = 0; ow < in.begin; ++ow) add_edge(c, pixels, gradients, ow, taps);
      row(c, in, pixels, gradients, taps);
      for (std::int64_t ow = in.end; ow < c.out_width; ++ow) add_edge(c, pixels, gradients, ow, taps);
    }
    if (c.db == nullptr) continue;
    F8 sum = load(bias);
    for (std::int64_t ow = 0; ow < c.out_width; ++ow) sum += load(gradients + ow * c.pixel);
    store(bias, sum);
  }
}

}  // namespace

void depthwise_gradient(const DepthwiseGradient& c) {
  const Inside in = inside(c);
  const Row row = row_of(c.kernel_width);
  const std::int64_t taps = c.kernel_height * c.kernel_width;
  const std::int64_t in_floats = c.in_height * c.in_width * c.pixel;
  const std::int64_t out_floats = c.out_height * c.out_width * c.pixel;
#pragma omp parallel num_threads(c.threads)
  {
    // Of one image and of all: sums of sums lose less than one long sum.
    float* image = c.sums + omp_get_thread_num() * depthwise_floats(c);
    float* all = image + (taps + 1) * kLanes;
    const Share share = my_share(c.blocks);
    for (std::int64_t b = share.begin; b < share.end; ++b) {
      for (std::int64_t i = 0; i < (taps + 1) * kLanes; ++i) all[i] = 0;
      for (std::int64_t n = 0; n < c.images; ++n) {
        for (std::int64_t i = 0; i < (taps + 1) * kLanes; ++i) image[i] = 0;
        const std::int64_t at = n * c.pixel_blocks + b * kLanes / c.pixel;
        const std::int64_t channel = b * kLanes % c.pixel;
        add_image(c, in, row, c.x + at * in_floats + channel, c.dy + at * out_floats + channel, image,
                  image + taps * kLanes);
        for (std::int64_t i = 0; i < (taps + 1) * kLanes; ++i) all[i] += image[i];
      }
      for (std::int64_t i = 0; i < taps * kLanes; ++i) c.dw[b * taps * kLanes + i] = all[i];
      if (c.db == nullptr) continue;
      for (std::int64_t i = 0; i < kLanes; ++i) c.db[b * kLanes + i] = all[taps * kLanes + i];
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
