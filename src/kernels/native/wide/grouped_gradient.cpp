#include "kernels/native/wide/grouped_rows.h"
#include "kernels/native/wide/loops.h"

/// The weights' gradient of convolutions in small groups: the sums of one row of the kernel stay in registers
/// while a row of the image goes by.
namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// A kernel of three columns at stride one: what is brought to its lane serves all three. `dy` has two zeros
/// on either side.
template <int Group>
void sum_three(const GroupedShape& shape, const float* x, const float* dy, float* sums) {
  F16 kept[3][Group];
#pragma GCC unroll 8
  for (int in = 0; in < Group; ++in) {
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) kept[k][in] = load16(sums + (k * Group + in) * kWide);
  }
  for (std::int64_t column = 0; column < shape.out_width + 2; ++column) {
    const F16 value = load16(x + column * kWide);
    const F16 dy0 = load16(dy + column * kWide);
    const F16 dy1 = load16(dy + (column - 1) * kWide);
    const F16 dy2 = load16(dy + (column - 2) * kWide);
#pragma GCC unroll 8
    for (int in = 0; in < Group; ++in) {
      const F16 own = permute16(value, of_group(Group, in));
      kept[0][in] += own * dy0;
      kept[1][in] += own * dy1;
      kept[2][in] += own * dy2;
    }
  }
#pragma GCC unroll 8
  for (int in = 0; in < Group; ++in) {
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) store16(sums + (k * Group + in) * kWide, kept[k][in]);
  }
}

template <int Group>
void sum_any(const GroupedShape& shape, const float* x, const float* dy, float* sums) {
  for (std::int64_t k = 0; k < shape.kernel_width; ++k) {
    F16 kept[Group];
#pragma GCC unroll 8
    for (int in = 0; in < Group; ++in) kept[in] = load16(sums + (k * Group + in) * kWide);
    for (std::int64_t column = 0; column < shape.out_width; ++column) {
      const F16 value = load16(x + (column * shape.stride_width + k) * kWide);
      const F16 gradient = load16(dy + column * kWide);
#pragma GCC unroll 8
      for (int in = 0; in < Group; ++in) kept[in] += permute16(value, of_group(Group, in)) * gradient;
    }
#pragma GCC unroll 8
    for (int in = 0; in < Group; ++in) store16(sums + (k * Group + in) * kWide, kept[in]);
  }
}

template <int Group>
void sum_row(const GroupedShape& shape, const float* x, const float* dy, float* sums) {
  if (shape.kernel_width == 3 && shape.stride_width == 1) {
    sum_three<Group>(shape, x, dy, sums);
  } else {
    sum_any<Group>(shape, x, dy, sums);
  }
}

void sum_image_block(const GroupedGradient& conv, std::int64_t image, std::int64_t block, float* sums,
                     float* scratch) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t at = image * shape.blocks + block;
  const std::int64_t row_sums = shape.kernel_width * shape.group * kWide;
  const std::int64_t row_floats = shape.out_width * kWide;
  PaddedRows rows(shape, conv.x + at * shape.in_height * shape.in_width * kWide, scratch);
  const float* from = conv.dy + at * shape.out_height * row_floats;
  float* dy = scratch + shape.rows_floats() + shape.kernel_width * kWide;
  for (std::int64_t i = 0; i < shape.kernel_width; ++i) {
    store16(dy - (i + 1) * kWide, F16{});
    store16(dy + row_floats + i * kWide, F16{});
  }
  for (std::int64_t out = 0; out < shape.out_height; ++out, from += row_floats) {
    for (std::int64_t i = 0; i < row_floats; i += kWide) store16(dy + i, load16(from + i));
    for (std::int64_t k = 0; k < shape.kernel_height; ++k) {
      const float* x = rows.get(out, k);
      if (x == nullptr) continue;
      float* to = sums + k * row_sums;
      if (shape.group == 8) {
        sum_row<8>(shape, x, dy, to);
      } else if (shape.group == 4) {
        sum_row<4>(shape, x, dy, to);
      } else {
        sum_row<2>(shape, x, dy, to);
      }
    }
  }
}

/// The parts' sums, added up in their order, as [channels, group, taps].
void unpack(const GroupedGradient& conv) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t taps = shape.taps();
#pragma omp for schedule(static)
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    for (std::int64_t i = 0; i < taps * shape.group; ++i) {
      const std::int64_t tap = i / shape.group;
      const std::int64_t in = i % shape.group;
      const float* from = conv.sums + (block * taps * shape.group + i) * kWide;
      F16 total = load16(from);
      for (std::int64_t p = 1; p < conv.parts; ++p) total += load16(from + p * shape.weight_floats());
      for (std::int64_t lane = 0; lane < kWide; ++lane) {
        conv.dw[((block * kWide + lane) * shape.group + in) * taps + tap] = total[lane];
      }
    }
  }
}

}  // namespace

void grouped_gradient(const GroupedGradient& conv) {
  const GroupedShape& shape = conv.shape;
  const std::int64_t block_floats = shape.taps() * shape.group * kWide;
#pragma omp parallel num_threads(smaller(conv.threads, omp_get_max_threads()))
  {
    float* scratch = conv.rows + omp_get_thread_num() * GroupedGradient::gradient_rows_floats(shape);
#pragma omp for schedule(static)
    for (std::int64_t item = 0; item < conv.parts * shape.blocks; ++item) {
      const std::int64_t part = item / shape.blocks;
      const std::int64_t block = item % shape.blocks;
      float* sums = conv.sums + item * block_floats;
      for (std::int64_t i = 0; i < block_floats; i += kWide) store16(sums + i, F16{});
      const std::int64_t end = shape.images * (part + 1) / conv.parts;
      for (std::int64_t image = shape.images * part / conv.parts; image < end; ++image) {
        sum_image_block(conv, image, block, sums, scratch);
      }
    }
    unpack(conv);
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
