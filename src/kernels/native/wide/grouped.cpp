#include "kernels/native/wide/grouped_rows.h"
#include "kernels/native/wide/loops.h"

/// Convolutions in small groups. A register holds the outputs of several groups; what each reads of its own
/// group's inputs is brought to its lane by a permutation, which serves all columns of the kernel.
namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// [blocks, taps, inputs of a group, 16 outputs].
void pack_weights(const GroupedConv& conv) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t group = shape.group;
  const std::int64_t taps = shape.taps();
#pragma omp for schedule(static)
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    float* to = conv.packed + block * taps * group * kWide;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t in = 0; in < group; ++in) {
        for (std::int64_t lane = 0; lane < kWide; ++lane) {
          const std::int64_t channel = block * kWide + lane;
          const std::int64_t from =
              conv.turned ? ((channel / group * group + in) * group + channel % group) * taps + taps - 1 - tap
                          : (channel * group + in) * taps + tap;
          *to++ = conv.weights[from];
        }
      }
    }
  }
}

/// What a row of outputs is summed from.
struct Sources {
  const float* rows[kMostKernelRows];
  const float* weights[kMostKernelRows];
  int count = 0;
};

/// `Columns` outputs in a row.
template <int Columns>
void sum_columns(const GroupedConv& conv, const Sources& sources, std::int64_t column, F16 bias, float* y) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t step = shape.stride_width * kWide;
  const std::int64_t tap_floats = shape.group * kWide;
  const int group = static_cast<int>(shape.group);
  const bool three = shape.kernel_width == 3 && shape.stride_width == 1;
  F16 sums[Columns];
  // The next row's outputs: stores that miss would hold up the sums.
  for (int i = 0; i < Columns; ++i) __builtin_prefetch(y + (column + i + shape.out_width) * kWide, 1);
#pragma GCC unroll 16
  for (int i = 0; i < Columns; ++i) sums[i] = bias;
  for (int source = 0; source < sources.count; ++source) {
    const float* x = sources.rows[source] + column * step;
    const float* weights = sources.weights[source];
    I16 from = of_group(group, 0);
    for (int in = 0; in < group; ++in, from += 1, weights += kWide) {
      if (three) {
        const F16 w0 = load16(weights);
        const F16 w1 = load16(weights + tap_floats);
        const F16 w2 = load16(weights + 2 * tap_floats);
#pragma GCC unroll 18
        for (int i = 0; i < Columns + 2; ++i) {
          const F16 value = permute16(load16(x + i * kWide), from);
          if (i >= 2) sums[i - 2] += value * w2;
          if (i >= 1 && i <= Columns) sums[i - 1] += value * w1;
          if (i < Columns) sums[i] += value * w0;
        }
      } else {
        for (std::int64_t k = 0; k < shape.kernel_width; ++k) {
          const F16 w = load16(weights + k * tap_floats);
#pragma GCC unroll 16
          for (int i = 0; i < Columns; ++i) sums[i] += permute16(load16(x + i * step + k * kWide), from) * w;
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Columns; ++i) {
    const F16 value = conv.relu ? (sums[i] < 0 ? F16{} : sums[i]) : sums[i];
    store16(y + (column + i) * kWide, value);
  }
}

/// The last columns are those before the end, some of them summed twice, to the same result.
template <int Columns>
void sum_row(const GroupedConv& conv, const Sources& sources, F16 bias, float* y) {
  const std::int64_t width = conv.shape.out_width;
  for (std::int64_t column = 0; column < width; column += Columns) {
    sum_columns<Columns>(conv, sources, smaller(column, width - Columns), bias, y);
  }
}

void sum_image_block(const GroupedConv& conv, std::int64_t image, std::int64_t block, float* ring) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t at = image * shape.blocks + block;
  const std::int64_t row_weights = shape.kernel_width * shape.group * kWide;
  PaddedRows rows(shape, conv.x + at * shape.in_height * shape.in_width * kWide, ring);
  const float* weights = conv.packed + block * shape.kernel_height * row_weights;
  const F16 bias = conv.bias != nullptr ? load16(conv.bias + block * kWide) : F16{};
  for (std::int64_t out = 0; out < shape.out_height; ++out) {
    Sources sources;
    for (std::int64_t k = 0; k < shape.kernel_height; ++k) {
      const float* row = rows.get(out, k);
      if (row == nullptr) continue;
      sources.rows[sources.count] = row;
      sources.weights[sources.count++] = weights + k * row_weights;
    }
    float* y = conv.y + (at * shape.out_height + out) * shape.out_width * kWide;
    if (shape.out_width >= 14) {
      sum_row<14>(conv, sources, bias, y);
    } else if (shape.out_width >= 7) {
      sum_row<7>(conv, sources, bias, y);
    } else {
      sum_row<1>(conv, sources, bias, y);
    }
  }
}

}  // namespace

void grouped_conv(const GroupedConv& conv) {
  const std::int64_t items = conv.shape.images * conv.shape.blocks;
#pragma omp parallel num_threads(smaller(conv.threads, omp_get_max_threads()))
  {
    pack_weights(conv);
    float* ring = conv.rows + omp_get_thread_num() * conv.shape.rows_floats();
    const Share share = my_share(items);
    for (std::int64_t item = share.begin; item < share.end; ++item) {
      sum_image_block(conv, item / conv.shape.blocks, item % conv.shape.blocks, ring);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
