#include <utility>

#include "kernels/native/simd/winograd_tiles.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Input channel blocks whose weights for two output blocks stay in the first-level cache.
constexpr std::int64_t kPanelBlocks = 256 / kLanes;
constexpr int kGroup = kWinogradGroup;
static_assert(kWinogradLanes == kLanes);

/// [taps 3x3] of one input channel and a block of output channels to the 16 points.
[[gnu::always_inline]] inline void transform_filter(const Lanes (&g)[9], float* to, std::int64_t stride) {
  const Lanes half = broadcast(0.5F);
  Lanes t[4][3];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const Lanes sum = (g[j] + g[6 + j]) * half;
    const Lanes middle = g[3 + j] * half;
    t[0][j] = g[j];
    t[1][j] = sum + middle;
    t[2][j] = sum - middle;
    t[3][j] = g[6 + j];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Lanes sum = (t[i][0] + t[i][2]) * half;
    const Lanes middle = t[i][1] * half;
    store(to + (4 * i + 0) * stride, t[i][0]);
    store(to + (4 * i + 1) * stride, sum + middle);
    store(to + (4 * i + 2) * stride, sum - middle);
    store(to + (4 * i + 3) * stride, t[i][2]);
  }
}

/// Weights of one pair of blocks, w[tap][in][out], to points[in][out].
void transform_weights(const float* w, float* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < kLanes; ++i) {
    Lanes g[9];
    for (int tap = 0; tap < 9; ++tap) g[tap] = load(w + (tap * kLanes + i) * kLanes);
    transform_filter(g, to + i * kLanes, stride);
  }
}

/// The same for the gradient of the input: taps turned round, in and out exchanged.
void transform_turned_weights(const float* w, float* to, std::int64_t stride) {
  float turned[9 * kLanes * kLanes];
  for (std::int64_t tap = 0; tap < 9; ++tap) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      for (std::int64_t o = 0; o < kLanes; ++o) {
        turned[((8 - tap) * kLanes + o) * kLanes + i] = w[(tap * kLanes + i) * kLanes + o];
      }
    }
  }
  transform_weights(turned, to, stride);
}

/// sums[tile][out] over `blocks` blocks of input channels, for `Tiles` tiles and `Outs` output blocks.
template <int Tiles, int Outs>
void multiply_group(const float* v, std::int64_t v_block, const float* u, std::int64_t u_out,
                    std::int64_t blocks, float* m, std::int64_t m_block, bool accumulate) {
  Lanes sums[Tiles][Outs];
#pragma GCC unroll 14
  for (int t = 0; t < Tiles; ++t) {
    for (int o = 0; o < Outs; ++o) sums[t][o] = accumulate ? load(m + o * m_block + t * kLanes) : Lanes{};
  }
  for (std::int64_t b = 0; b < blocks; ++b) {
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; ++i) {
      Lanes weights[Outs];
      for (int o = 0; o < Outs; ++o) weights[o] = load(u + o * u_out + i * kLanes);
#pragma GCC unroll 14
      for (int t = 0; t < Tiles; ++t) {
        const Lanes value = broadcast(v[t * kLanes + i]);
        for (int o = 0; o < Outs; ++o) sums[t][o] += value * weights[o];
      }
    }
    v += v_block;
    u += kLanes * kLanes;
  }
#pragma GCC unroll 14
  for (int t = 0; t < Tiles; ++t) {
    for (int o = 0; o < Outs; ++o) store(m + o * m_block + t * kLanes, sums[t][o]);
  }
}

using MultiplyGroup = void (*)(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                               std::int64_t, bool);
/// By the number of tiles, less one.
struct MultiplyGroups {
  MultiplyGroup of[kGroup];
};
template <int Outs, int... Less>
constexpr MultiplyGroups multiply_groups(std::integer_sequence<int, Less...>) {
  return {{multiply_group<Less + 1, Outs>...}};
}
template <int Outs>
constexpr MultiplyGroups kMultiply = multiply_groups<Outs>(std::make_integer_sequence<int, kGroup>());

/// m[out][tile][lane] = sum over in of v[in][tile][lane] u[out][in][lane][lane], for one point.
void multiply_point(const float* v, const float* u, float* m, std::int64_t in_blocks, std::int64_t out_blocks,
                    std::int64_t tiles) {
  const std::int64_t groups = (tiles + kGroup - 1) / kGroup;
  for (std::int64_t out = 0; out < out_blocks; out += 2) {
    const MultiplyGroup* multiply = (out + 1 < out_blocks ? kMultiply<2> : kMultiply<1>).of;
    for (std::int64_t in = 0; in < in_blocks; in += kPanelBlocks) {
      const std::int64_t blocks = smaller(in_blocks - in, kPanelBlocks);
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t first = tiles * g / groups;
        const std::int64_t count = tiles * (g + 1) / groups - first;
        multiply[count - 1](v + (in * tiles + first) * kLanes, tiles * kLanes,
                            u + (out * in_blocks + in) * kLanes * kLanes, in_blocks * kLanes * kLanes, blocks,
                            m + (out * tiles + first) * kLanes, tiles * kLanes, in > 0);
      }
    }
  }
}

/// The 16 points of one tile and block of channels to its 2x2 results.
[[gnu::always_inline]] inline void transform_output(const float* m, std::int64_t stride, Lanes (&y)[2][2]) {
  Lanes t[2][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Lanes a = load(m + (4 + j) * stride);
    const Lanes b = load(m + (8 + j) * stride);
    t[0][j] = load(m + j * stride) + a + b;
    t[1][j] = a - b - load(m + (12 + j) * stride);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    y[i][0] = t[i][0] + t[i][1] + t[i][2];
    y[i][1] = t[i][1] - t[i][2] - t[i][3];
  }
}

void transform_outputs(const WinogradConv& conv, const WinogradPlane& plane, Share tiles, const float* m) {
  const ConvShape& shape = conv.shape;
  const std::int64_t count = tiles.end - tiles.begin;
  const std::int64_t stride = point_stride(shape.out_blocks * count * kLanes);
  const std::int64_t height = shape.out[1];
  const std::int64_t width = shape.out[2];
  for (std::int64_t b = 0; b < shape.out_blocks; ++b) {
    const Lanes bias = conv.bias != nullptr ? load(conv.bias + b * kLanes) : Lanes{};
    WinogradTile tile = tile_at(plane, tiles.begin);
    for (std::int64_t t = 0; t < count; ++t, advance(plane, tile)) {
      Lanes y[2][2];
      transform_output(m + (b * count + t) * kLanes, stride, y);
      float* to =
          conv.y + (((tile.image * shape.out_blocks + b) * height + tile.row) * width + tile.column) * kLanes;
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          if (tile.row + i >= height || tile.column + j >= width) continue;
          const Lanes value = y[i][j] + bias;
          store(to + (i * width + j) * kLanes, conv.relu ? relu(value) : value);
        }
      }
    }
  }
}

}  // namespace

void winograd_conv(const WinogradConv& conv) {
  const ConvShape& shape = conv.shape;
  const WinogradPlane plane(shape);
  const std::int64_t u_stride = point_stride(shape.in_blocks * shape.out_blocks * kLanes * kLanes);
#pragma omp parallel num_threads(smaller(conv.threads, omp_get_max_threads()))
  {
    const Share pairs = my_share(shape.in_blocks * shape.out_blocks);
    for (std::int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
      const std::int64_t out = pair / shape.in_blocks;
      const std::int64_t in = pair % shape.in_blocks;
      float* to = conv.transformed + pair * kLanes * kLanes;
      if (conv.turned) {
        transform_turned_weights(conv.weights + (in * shape.out_blocks + out) * 9 * kLanes * kLanes, to,
                                 u_stride);
      } else {
        transform_weights(conv.weights + pair * 9 * kLanes * kLanes, to, u_stride);
      }
    }
#pragma omp barrier
    // As many tiles at a time as fit the scratch, the same number of times for each thread.
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t rounds = (plane.tiles + conv.block_tiles * team - 1) / (conv.block_tiles * team);
    const Share share = my_share(rounds * team);
    float* v = conv.scratch + omp_get_thread_num() * conv.scratch_floats;
    float* m = v + kPoints * point_stride(shape.in_blocks * conv.block_tiles * kLanes);
    for (std::int64_t block = share.begin; block < share.end; ++block) {
      const Share tiles{plane.tiles * block / (rounds * team), plane.tiles * (block + 1) / (rounds * team)};
      const std::int64_t count = tiles.end - tiles.begin;
      if (count == 0) continue;
      transform_inputs(shape, plane, conv.x, shape.in_blocks, {0, shape.in_blocks}, tiles, v);
      for (std::int64_t e = 0; e < kPoints; ++e) {
        multiply_point(v + e * point_stride(shape.in_blocks * count * kLanes),
                       conv.transformed + e * u_stride,
                       m + e * point_stride(shape.out_blocks * count * kLanes), shape.in_blocks,
                       shape.out_blocks, count);
      }
      transform_outputs(conv, plane, tiles, m);
    }
  }
}

std::int64_t winograd_weight_floats(const ConvShape& shape) {
  return kPoints * point_stride(shape.in_blocks * shape.out_blocks * kLanes * kLanes);
}

std::int64_t winograd_thread_floats(const ConvShape& shape, std::int64_t block_tiles) {
  return kPoints * (point_stride(shape.in_blocks * block_tiles * kLanes) +
                    point_stride(shape.out_blocks * block_tiles * kLanes));
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
