#include "kernels/native/lrn_kernel.h"

#include <algorithm>
#include <cmath>

namespace penstock::kernels::native {
namespace {

/// Positions that are worked on together, so that the loops over them vectorise.
constexpr std::int64_t kTile = 64;

/// What one tile of positions of one image needs; channels are `stride` floats apart.
class LrnTile {
 public:
  LrnTile(const ir::LrnAttrs& attrs, std::int64_t channels, std::int64_t stride, std::int64_t count)
      : attrs_(attrs), channels_(channels), stride_(stride), count_(count) {}

  void forward(const float* x, float* y) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      float base[kTile];
      base_of(x, c, base);
      for (std::int64_t i = 0; i < count_; ++i) y[c * stride_ + i] = x[c * stride_ + i] * power(base[i]);
    }
  }

  /// dx_c = dy_c base_c^-beta - 2 alpha beta / size x_c sum over the channels j whose window holds c of
  /// dy_j x_j base_j^(-beta - 1)
  void backward(const float* x, const float* dy, float* dx, float* terms) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      float base[kTile];
      base_of(x, c, base);
      for (std::int64_t i = 0; i < count_; ++i) {
        const std::int64_t at = c * stride_ + i;
        const float scaled = dy[at] * power(base[i]);
        terms[c * kTile + i] = scaled * x[at] / base[i];
        dx[at] = scaled;
      }
    }
    const float factor = 2 * attrs_.alpha * attrs_.beta / static_cast<float>(attrs_.size);
    for (std::int64_t c = 0; c < channels_; ++c) {
      // PyTorch's window begins size / 2 channels before its own and ends (size - 1) / 2 behind it.
      const std::int64_t first = std::max<std::int64_t>(0, c - (attrs_.size - 1) / 2);
      const std::int64_t last = std::min(channels_ - 1, c + attrs_.size / 2);
      float sum[kTile] = {};
      for (std::int64_t j = first; j <= last; ++j) {
        for (std::int64_t i = 0; i < count_; ++i) sum[i] += terms[j * kTile + i];
      }
      for (std::int64_t i = 0; i < count_; ++i) dx[c * stride_ + i] -= factor * x[c * stride_ + i] * sum[i];
    }
  }

 private:
  void base_of(const float* x, std::int64_t c, float* base) const {
    const std::int64_t first = std::max<std::int64_t>(0, c - attrs_.size / 2);
    const std::int64_t last = std::min(channels_ - 1, c + (attrs_.size - 1) / 2);
    std::fill_n(base, count_, 0.0F);
    for (std::int64_t j = first; j <= last; ++j) {
      for (std::int64_t i = 0; i < count_; ++i) base[i] += x[j * stride_ + i] * x[j * stride_ + i];
    }
    const float scale = attrs_.alpha / static_cast<float>(attrs_.size);
    for (std::int64_t i = 0; i < count_; ++i) base[i] = attrs_.k + scale * base[i];
  }
  float power(float base) const {
    // The usual exponent without a call of pow.
    if (attrs_.beta == 0.75F) return 1 / (std::sqrt(base) * std::sqrt(std::sqrt(base)));
    return std::pow(base, -attrs_.beta);
  }

  const ir::LrnAttrs& attrs_;
  std::int64_t channels_, stride_, count_;
};

/// Calls f(tile, offset of channel 0) for all tiles of all images.
template <typename F>
void for_each_tile(const ir::Shape& shape, const ir::LrnAttrs& attrs, std::int64_t first, std::int64_t step,
                   const F& f) {
  const std::int64_t positions = shape.elements(2, shape.rank());
  const std::int64_t per_image = (positions + kTile - 1) / kTile;
  for (std::int64_t t = first; t < shape[0] * per_image; t += step) {
    const std::int64_t begin = t % per_image * kTile;
    const LrnTile tile(attrs, shape[1], positions, std::min(kTile, positions - begin));
    f(tile, t / per_image * shape[1] * positions + begin);
  }
}

/// A fixed number of workers, so that scratch can be booked before the number of threads is known.
constexpr std::int64_t kWorkers = 64;

}  // namespace

std::shared_ptr<const Kernel> make_lrn(const ir::Shape& shape, const ir::LrnAttrs& attrs) {
  return make_kernel([shape, attrs](const KernelArgs& args) {
#pragma omp parallel for schedule(static)
    for (std::int64_t worker = 0; worker < kWorkers; ++worker) {
      for_each_tile(shape, attrs, worker, kWorkers, [&](const LrnTile& tile, std::int64_t at) {
        tile.forward(floats_in(args, 0) + at, floats_out(args, 0) + at);
      });
    }
  });
}

std::shared_ptr<const Kernel> make_lrn_backward(const ir::Shape& shape, const ir::LrnAttrs& attrs) {
  const std::int64_t floats = shape[1] * kTile;
  return make_kernel(
      [shape, attrs, floats](const KernelArgs& args) {
#pragma omp parallel for schedule(static)
        for (std::int64_t worker = 0; worker < kWorkers; ++worker) {
          float* terms = static_cast<float*>(args.scratch) + worker * floats;
          for_each_tile(shape, attrs, worker, kWorkers, [&](const LrnTile& tile, std::int64_t at) {
            tile.backward(floats_in(args, 0) + at, floats_in(args, 1) + at, floats_out(args, 0) + at, terms);
          });
        }
      },
      {{0, 1}}, kWorkers * floats * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace penstock::kernels::native
