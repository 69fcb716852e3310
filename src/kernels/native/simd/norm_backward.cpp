#include "kernels/native/simd/norm_parts.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// What followed the norm.
enum class Followed { nothing, relu, silu };

/// The gradient at the norm's output, of one run: dy where nothing followed, dy where the ReLU let through,
/// or dy times SiLU's derivative at what the norm gave, which is made again.
template <Followed followed>
struct GradientOf {
  GradientOf(const NormBackward& norm, std::int64_t row, const Run& run)
      : x(norm.x + row * norm.view.row_elements()),
        dy(norm.dy + row * norm.view.row_elements()),
        mask(followed == Followed::relu ? norm.mask + row * norm.view.mask_row_bytes() : nullptr) {
    if constexpr (followed == Followed::silu) affine = affine_of(norm, run);
  }

  [[gnu::always_inline]] F8 operator()(std::int64_t at, std::int64_t lanes) const {
    const F8 gradient = take(dy + at, lanes);
    if constexpr (followed == Followed::relu) return keep_bits(gradient, mask[at / 8]);
    if constexpr (followed == Followed::silu) {
      const F8 v = take(x + at, lanes) * affine.scale + affine.shift;
      const F8 share = sigmoid8(v);
      return gradient * (share * (1.0F + v * (1.0F - share)));
    }
    return gradient;
  }

  const float* x;
  const float* dy;
  const std::uint8_t* mask;
  Affine affine{};
};

/// Sums of dy and dy * (x - mean) over one row, and dz = dy behind the ReLU.
template <Followed followed, bool Dz>
void backward_sums(const NormBackward& norm, std::int64_t row) {
  const ChannelView& view = norm.view;
  const std::int64_t base = row * view.row_elements();
  const float* x = norm.x + base;
  float* dz = Dz ? norm.dz + base : nullptr;
  double* a = norm.partial + row * 2 * view.block;
  double* b = a + view.block;
  for (std::int64_t i = 0; i < 2 * view.block; ++i) a[i] = 0;
  for_each_run(view, row, [&](const Run& run) {
    const F8 mean = lanes_of(view, run, norm.mean);
    const GradientOf<followed> gradient_at(norm, row, run);
    add_terms(view, run, a, b, [&](std::int64_t at, std::int64_t lanes) {
      const F8 gradient = gradient_at(at, lanes);
      if constexpr (Dz) put(dz + at, gradient, lanes);
      return Sums{gradient, gradient * (take(x + at, lanes) - mean)};
    });
  });
}

/// dx = gamma / root * (dy - dbeta / count - (x - mean) / root * dgamma / count) of one run.
template <Followed followed>
struct DataOf {
  DataOf(const NormBackward& norm, std::int64_t row, const Run& run) : gradient_at(norm, row, run) {
    const ChannelView& view = norm.view;
    const float* dgamma = norm.whole_dgamma != nullptr ? norm.whole_dgamma : norm.dgamma;
    const float* dbeta = norm.whole_dbeta != nullptr ? norm.whole_dbeta : norm.dbeta;
    const F8 count =
        broadcast(static_cast<float>(norm.count > 0 ? norm.count : view.images * view.positions));
    const F8 root = square_root(lanes_of(view, run, norm.variance) + broadcast(norm.epsilon));
    mean = lanes_of(view, run, norm.mean);
    scale = lanes_of(view, run, norm.gamma) / root;
    slope = lanes_of(view, run, dgamma) / (root * count);
    shift = lanes_of(view, run, dbeta) / count;
  }

  [[gnu::always_inline]] F8 operator()(F8 x, F8 gradient) const {
    return scale * (gradient - shift - (x - mean) * slope);
  }

  GradientOf<followed> gradient_at;
  F8 mean, scale, slope, shift;
};

/// dx, and dz = dy behind the ReLU.
template <Followed followed, bool Dz>
void backward_row(const NormBackward& norm, std::int64_t row) {
  const ChannelView& view = norm.view;
  const std::int64_t base = row * view.row_elements();
  const float* x = norm.x + base;
  float* dx = norm.dx + base;
  float* dz = Dz ? norm.dz + base : nullptr;
  const auto make = [&](const DataOf<followed>& data, std::int64_t at, std::int64_t lanes)
      __attribute__((always_inline)) {
    const F8 gradient = data.gradient_at(at, lanes);
    const F8 result = data(take(x + at, lanes), gradient);
    if constexpr (Dz) put(dz + at, gradient, lanes);
    put(dx + at, result, lanes);
  };
  if (fills_lines(view)) {
    const auto both = [&](const Run& run) {
      const DataOf<followed> first(norm, row, run);
      const DataOf<followed> second(norm, row, beside(run));
      std::int64_t at = run.offset;
      for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) {
        make(first, at, kLanes);
        make(second, at + kLanes, kLanes);
      }
    };
    for_each_run(view, row, both, 2);
    return;
  }
  for_each_run(view, row, [&](const Run& run) {
    const DataOf<followed> data(norm, row, run);
    std::int64_t at = run.offset;
    for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) make(data, at, kLanes);
    if (run.tail > 0) make(data, at, run.tail);
  });
}

using BackwardRow = void(const NormBackward&, std::int64_t);

BackwardRow* choose_backward_row(const NormBackward& norm) {
  if (norm.beta != nullptr) return backward_row<Followed::silu, false>;
  const bool mask = norm.mask != nullptr;
  if (norm.dz != nullptr)
    return mask ? backward_row<Followed::relu, true> : backward_row<Followed::nothing, true>;
  return mask ? backward_row<Followed::relu, false> : backward_row<Followed::nothing, false>;
}

/// `with_dz`: it is written on the way.
BackwardRow* choose_backward_sums(const NormBackward& norm, bool with_dz) {
  if (norm.beta != nullptr) return backward_sums<Followed::silu, false>;
  const bool mask = norm.mask != nullptr;
  if (with_dz) return mask ? backward_sums<Followed::relu, true> : backward_sums<Followed::nothing, true>;
  return mask ? backward_sums<Followed::relu, false> : backward_sums<Followed::nothing, false>;
}

/// This thread's rows, backwards: see norm_statistics().
void sum_rows(const NormBackward& norm, bool with_dz) {
  BackwardRow* const sums = choose_backward_sums(norm, with_dz);
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

void norm_backward(const NormBackward& norm) {
  BackwardRow* const gradient = choose_backward_row(norm);
#pragma omp parallel
  {
    sum_rows(norm, false);
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
    sum_rows(norm, norm.dz != nullptr);
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
