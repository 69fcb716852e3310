#include "kernels/native/simd/rows.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Sums of one row: `sums` is `block` long.
void row_sums(const ChannelView& view, const float* values, std::int64_t row, double* sums) {
  for (std::int64_t i = 0; i < view.block; ++i) sums[i] = 0;
  for_each_run(view, row, [&](const Run& run) {
    for (std::int64_t begin = 0; begin < run.count; begin += kStretch) {
      const std::int64_t end = begin + kStretch < run.count ? begin + kStretch : run.count;
      F8 sum{};
      for (std::int64_t i = begin; i < end; ++i) sum += load(values + run.offset + i * run.stride);
      for (std::int64_t i = 0; i < kLanes; ++i) {
        sums[view.block == 1 ? 0 : run.lane + i] += static_cast<double>(sum[i]);
      }
    }
    for (std::int64_t i = 0; i < run.tail; ++i) {
      sums[0] += static_cast<double>(values[run.offset + run.count * run.stride + i]);
    }
  });
}

}  // namespace

void add_bias(const ChannelView& view, const float* x, const float* bias, float* y) {
#pragma omp parallel if (view.elements() > kSerial)
  {
    const Share share = my_share(view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const float* from = x + row * view.row_elements();
      float* to = y + row * view.row_elements();
      for_each_run(view, row, [&](const Run& run) {
        const F8 shift = lanes_of(view, run, bias);
        std::int64_t at = run.offset;
        for (std::int64_t i = 0; i < run.count; ++i, at += run.stride)
          store(to + at, load(from + at) + shift);
        if (run.tail > 0) store_part(to + at, load_part(from + at, run.tail) + shift, run.tail);
      });
    }
  }
}

void channel_sums(const ChannelView& view, const float* x, double* partial, float* sums) {
#pragma omp parallel if (view.elements() > kSerial)
  {
    const Share share = my_share(view.rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      row_sums(view, x + row * view.row_elements(), row, partial + row * view.block);
    }
#pragma omp barrier
    const Share channels = my_share(view.channels);
    for (std::int64_t c = channels.begin; c < channels.end; ++c) {
      double sum = 0;
      for (std::int64_t image = 0; image < view.images; ++image) {
        sum += partial[(image * view.blocks + c / view.block) * view.block + c % view.block];
      }
      sums[c] = static_cast<float>(sum);
    }
  }
}

void global_average(const ChannelView& view, const float* x, float* y) {
#pragma omp parallel if (view.elements() > kSerial)
  {
    const Share share = my_share(view.rows());
    const auto count = static_cast<float>(view.positions);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const float* values = x + row * view.row_elements();
      float* out = y + row / view.blocks * view.channels;
      for_each_run(view, row, [&](const Run& run) {
        F8 sum{};
        std::int64_t at = run.offset;
        for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) sum += load(values + at);
        if (run.tail > 0) sum += load_part(values + at, run.tail);
        if (view.block == 1) {
          float total = 0;
          for (int i = 0; i < kLanes; ++i) total += sum[i];
          out[run.channel] = total / count;
          return;
        }
        // Channels-last goes in tiles: later tiles add to what the first wrote.
        for (std::int64_t i = 0; i < kLanes && run.channel + i < view.channels; ++i) {
          const float before = run.offset < view.block ? 0 : out[run.channel + i];
          out[run.channel + i] = before + sum[i] / count;
        }
      });
    }
  }
}

void global_average_backward(const ChannelView& view, const float* dy, float* dx) {
#pragma omp parallel if (view.elements() > kSerial)
  {
    const Share share = my_share(view.rows());
    const F8 count = broadcast(static_cast<float>(view.positions));
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const float* gradients = dy + row / view.blocks * view.channels;
      float* to = dx + row * view.row_elements();
      for_each_run(view, row, [&](const Run& run) {
        const F8 value = lanes_of(view, run, gradients) / count;
        std::int64_t at = run.offset;
        for (std::int64_t i = 0; i < run.count; ++i, at += run.stride) store(to + at, value);
        if (run.tail > 0) store_part(to + at, value, run.tail);
      });
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
