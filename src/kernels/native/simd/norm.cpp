#include "kernels/native/simd/norm_parts.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Whether a walk over the runs, two side by side where they fill lines, writes each line at once.
bool writes_lines(const ChannelView& view) {
  if (view.block == 1) return view.row_elements() % kLanes == 0;
  return view.block == kLanes || fills_lines(view);
}

/// What follows the norm.
enum class Behind { nothing, relu, relu_with_ceiling, silu };

template <bool Add, Behind behind, bool Mask, bool Stream>
void forward_row(const NormForward& norm, std::int64_t row) {
  const ChannelView& view = norm.view;
  const std::int64_t base = row * view.row_elements();
  const float* x = norm.x + base;
  const float* z = Add ? norm.z + base : nullptr;
  float* y = norm.y + base;
  std::uint8_t* mask = Mask ? norm.mask + row * view.mask_row_bytes() : nullptr;
  constexpr bool kCeiling = behind == Behind::relu_with_ceiling;
  const F8 ceiling = broadcast(norm.ceiling);
  const auto value = [&](const Affine& affine, std::int64_t at, std::int64_t lanes) {
    F8 v = take(x + at, lanes) * affine.scale + affine.shift;
    if constexpr (Add) v += take(z + at, lanes);
    if constexpr (Mask) mask[at / 8] = positive_bits(first_lanes(v, lanes));
    if constexpr (Mask && kCeiling) mask[at / 8] &= positive_bits(ceiling - v);
    if constexpr (behind == Behind::relu || kCeiling) v = relu(v);
    if constexpr (kCeiling) v = v > ceiling ? ceiling : v;
    if constexpr (behind == Behind::silu) v *= sigmoid8(v);
    return v;
  };
  const auto make = [&](const Affine& affine, std::int64_t at) __attribute__((always_inline)) {
    if constexpr (Stream) {
      stream(y + at, value(affine, at, kLanes));
    } else {
      store(y + at, value(affine, at, kLanes));
    }
  };
  if (fills_lines(view)) {
    const auto both = [&](const Run& run) {
      const Affine first = affine_of(norm, run);
      const Affine second = affine_of(norm, beside(run));
      std::int64_t at = run.offset;
      for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) {
        make(first, at);
        make(second, at + kLanes);
      }
    };
    for_each_run(view, row, both, 2);
    return;
  }
  for_each_run(view, row, [&](const Run& run) {
    const Affine affine = affine_of(norm, run);
    std::int64_t at = run.offset;
    for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) make(affine, at);
    if (run.tail > 0) store_part(y + at, value(affine, at, run.tail), run.tail);
  });
}

using ForwardRow = void (*)(const NormForward&, std::int64_t);

template <bool Add, Behind behind, bool Stream>
ForwardRow choose_mask(const NormForward& norm) {
  return norm.mask != nullptr ? forward_row<Add, behind, true, Stream>
                              : forward_row<Add, behind, false, Stream>;
}

template <bool Add, bool Stream>
ForwardRow choose_behind(const NormForward& norm) {
  if (!norm.relu) return forward_row<Add, Behind::nothing, false, Stream>;
  if (norm.ceiling == 0) return choose_mask<Add, Behind::relu, Stream>(norm);
  return choose_mask<Add, Behind::relu_with_ceiling, Stream>(norm);
}

template <bool Stream>
ForwardRow choose_forward_row(const NormForward& norm) {
  if (norm.silu) return forward_row<false, Behind::silu, false, Stream>;
  return norm.z != nullptr ? choose_behind<true, Stream>(norm) : choose_behind<false, Stream>(norm);
}

}  // namespace

void norm_statistics(const ChannelView& view, const float* x, double* partial, float* mean, float* variance) {
  // Deviations from one of the channel's own values: no cancellation when the mean is large.
  const auto origin = [&](std::int64_t c) {
    return x + c / view.block * view.row_elements() + c % view.block;
  };
#pragma omp parallel
  {
    const Share share = my_share(view.rows());
    // Backwards: what the op before wrote last is still in the caches, and what is read last here the next op
    // reads first.
    for (std::int64_t row = share.end; row-- > share.begin;) {
      double* a = partial + row * 2 * view.block;
      double* b = a + view.block;
      for (std::int64_t i = 0; i < 2 * view.block; ++i) a[i] = 0;
      const float* values = x + row * view.row_elements();
      for_each_run(view, row, [&](const Run& run) {
        const float* first = origin(run.channel);
        const F8 shift = view.block == 1 ? broadcast(*first) : load(first);
        add_terms(view, run, a, b, [&](std::int64_t at, std::int64_t lanes) {
          const F8 deviation = take(values + at, lanes) - shift;
          return Sums{deviation, deviation * deviation};
        });
      });
    }
#pragma omp barrier
    const auto count = static_cast<double>(view.images * view.positions);
    const Share channels = my_share(view.channels);
    for (std::int64_t c = channels.begin; c < channels.end; ++c) {
      double sum = 0;
      double squares = 0;
      sum_images(view, partial, c, sum, squares);
      const double deviation = squares - sum * sum / count;
      mean[c] = static_cast<float>(static_cast<double>(*origin(c)) + sum / count);
      variance[c] = static_cast<float>(deviation > 0 ? deviation / count : 0);
    }
  }
}

void norm_forward(const NormForward& norm) {
  const ChannelView& view = norm.view;
  const bool fresh = norm.y != norm.x && norm.y != norm.z;
  const bool streaming = fresh && writes_lines(view) && worth_streaming(norm.y, view.elements());
  const ForwardRow forward = streaming ? choose_forward_row<true>(norm) : choose_forward_row<false>(norm);
#pragma omp parallel
  {
    const Share share = my_share(view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) forward(norm, row);
    if (streaming) finish_streaming();
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
