#include "kernels/native/simd/rows.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Adds up the rows' partial sums of channel `c`, image after image, so that the order is the same for any
/// number of threads.
void sum_images(const ChannelView& view, const double* partial, std::int64_t c, double& a, double& b) {
  a = 0;
  b = 0;
  for (std::int64_t image = 0; image < view.images; ++image) {
    const double* row = partial + (image * view.blocks + c / view.block) * 2 * view.block;
    a += row[c % view.block];
    b += row[view.block + c % view.block];
  }
}

/// What follows the norm.
enum class Behind { nothing, relu, relu_with_ceiling };

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
  for_each_run(view, row, [&](const Run& run) {
    const F8 root = square_root(lanes_of(view, run, norm.variance) + broadcast(norm.epsilon));
    const F8 scale = lanes_of(view, run, norm.gamma) / root;
    const F8 shift = lanes_of(view, run, norm.beta) - lanes_of(view, run, norm.mean) * scale;
    const auto value = [&](std::int64_t at, std::int64_t lanes) {
      F8 v = take(x + at, lanes) * scale + shift;
      if constexpr (Add) v += take(z + at, lanes);
      if constexpr (Mask) mask[at / 8] = positive_bits(first_lanes(v, lanes));
      if constexpr (Mask && kCeiling) mask[at / 8] &= positive_bits(ceiling - v);
      if constexpr (behind != Behind::nothing) v = relu(v);
      if constexpr (kCeiling) v = v > ceiling ? ceiling : v;
      return v;
    };
    std::int64_t at = run.offset;
    for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) {
      if constexpr (Stream) {
        stream(y + at, value(at, kLanes));
      } else {
        store(y + at, value(at, kLanes));
      }
    }
    if (run.tail > 0) store_part(y + at, value(at, run.tail), run.tail);
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
  return norm.z != nullptr ? choose_behind<true, Stream>(norm) : choose_behind<false, Stream>(norm);
}

/// Sums of dy and dy * (x - mean) over one row.
template <bool Mask>
void backward_sums(const NormBackward& norm, std::int64_t row) {
  const ChannelView& view = norm.view;
  const std::int64_t base = row * view.row_elements();
  const float* x = norm.x + base;
  const float* dy = norm.dy + base;
  const std::uint8_t* mask = Mask ? norm.mask + row * view.mask_row_bytes() : nullptr;
  double* a = norm.partial + row * 2 * view.block;
  double* b = a + view.block;
  for (std::int64_t i = 0; i < 2 * view.block; ++i) a[i] = 0;
  for_each_run(view, row, [&](const Run& run) {
    const F8 mean = lanes_of(view, run, norm.mean);
    add_terms(view, run, a, b, [&](std::int64_t at, std::int64_t lanes) {
      F8 gradient = take(dy + at, lanes);
      if constexpr (Mask) gradient = keep_bits(gradient, mask[at / 8]);
      return Sums{gradient, gradient * (take(x + at, lanes) - mean)};
    });
  });
}

/// dx = gamma / root * (dy - dbeta / count - (x - mean) / root * dgamma / count), dz = dy behind the ReLU.
template <bool Mask, bool Dz>
void backward_row(const NormBackward& norm, std::int64_t row) {
  const ChannelView& view = norm.view;
  const std::int64_t base = row * view.row_elements();
  const float* x = norm.x + base;
  const float* dy = norm.dy + base;
  float* dx = norm.dx + base;
  float* dz = Dz ? norm.dz + base : nullptr;
  const std::uint8_t* mask = Mask ? norm.mask + row * view.mask_row_bytes() : nullptr;
  const float* dgamma = norm.whole_dgamma != nullptr ? norm.whole_dgamma : norm.dgamma;
  const float* dbeta = norm.whole_dbeta != nullptr ? norm.whole_dbeta : norm.dbeta;
  const F8 count = broadcast(static_cast<float>(norm.count > 0 ? norm.count : view.images * view.positions));
  for_each_run(view, row, [&](const Run& run) {
    const F8 root = square_root(lanes_of(view, run, norm.variance) + broadcast(norm.epsilon));
    const F8 mean = lanes_of(view, run, norm.mean);
    const F8 scale = lanes_of(view, run, norm.gamma) / root;
    const F8 slope = lanes_of(view, run, dgamma) / (root * count);
    const F8 shift = lanes_of(view, run, dbeta) / count;
    const auto value = [&](std::int64_t at, std::int64_t lanes) {
      F8 gradient = take(dy + at, lanes);
      if constexpr (Mask) gradient = keep_bits(gradient, mask[at / 8]);
      const F8 result = scale * (gradient - shift - (take(x + at, lanes) - mean) * slope);
      if constexpr (Dz) {
        if (lanes == kLanes) {
          store(dz + at, gradient);
        } else {
          store_part(dz + at, gradient, lanes);
        }
      }
      return result;
    };
    std::int64_t at = run.offset;
    for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) store(dx + at, value(at, kLanes));
    if (run.tail > 0) store_part(dx + at, value(at, run.tail), run.tail);
  });
}

using BackwardRow = void(const NormBackward&, std::int64_t);

BackwardRow* choose_backward_row(const NormBackward& norm) {
  const bool mask = norm.mask != nullptr;
  if (norm.dz != nullptr) return mask ? backward_row<true, true> : backward_row<false, true>;
  return mask ? backward_row<true, false> : backward_row<false, false>;
}

/// This thread's rows, backwards: see norm_statistics().
void sum_rows(const NormBackward& norm) {
  const auto sums = norm.mask != nullptr ? backward_sums<true> : backward_sums<false>;
  const Share share = my_share(norm.view.rows());
  for (std::int64_t row = share.end; row-- > share.begin;) sums(norm, row);
}

/// This thread's channels, once all rows are summed.
void sum_channels(const NormBackward& norm) {
  const Share channels = my_share(norm.view.channels);
  for (std::int64_t c = channels.begin; c < channels.end; ++c) {
    double a = 0;
    double b = 0;
    sum_images(norm.view, norm.partial, c, a, b);
    norm.dbeta[c] = static_cast<float>(a);
    norm.dgamma[c] = static_cast<float>(b / std::sqrt(static_cast<double>(norm.variance[c]) + norm.epsilon));
  }
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
  const bool streaming =
      fresh && view.row_elements() % kLanes == 0 && worth_streaming(norm.y, view.elements());
  const ForwardRow forward = streaming ? choose_forward_row<true>(norm) : choose_forward_row<false>(norm);
#pragma omp parallel
  {
    const Share share = my_share(view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) forward(norm, row);
    if (streaming) finish_streaming();
  }
}

void norm_backward(const NormBackward& norm) {
  BackwardRow* const gradient = choose_backward_row(norm);
#pragma omp parallel
  {
    sum_rows(norm);
#pragma omp barrier
    sum_channels(norm);
#pragma omp barrier
    const Share share = my_share(norm.view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) gradient(norm, row);
  }
}

void norm_backward_sums(const NormBackward& norm) {
#pragma omp parallel
  {
    sum_rows(norm);
#pragma omp barrier
    sum_channels(norm);
  }
}

void norm_backward_data(const NormBackward& norm) {
  BackwardRow* const gradient = choose_backward_row(norm);
#pragma omp parallel
  {
    const Share share = my_share(norm.view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) gradient(norm, row);
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
