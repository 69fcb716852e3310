#include "kernels/native/simd/gradient_tile.h"
#include "kernels/native/simd/winograd_tiles.h"

/// F(3x3, 2x2): the 3x3 gradient of the weights from 4x4 inputs and 2x2 gradients of the result, tile by
/// tile, summed over all tiles before the way back.
namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// 2x2 gradients of one block of channels at (row, column), zero outside, to the 16 points.
[[gnu::always_inline]] inline void transform_gradient(const float* plane, std::int64_t height,
                                                      std::int64_t width, const WinogradTile& tile, float* to,
                                                      std::int64_t stride) {
  const Lanes half = broadcast(0.5F);
  const float* from = plane + (tile.row * width + tile.column) * kLanes;
  const bool right = tile.column + 1 < width;
  const bool below = tile.row + 1 < height;
  const Lanes g[2][2] = {{load(from), right ? load(from + kLanes) : Lanes{}},
                         {below ? load(from + width * kLanes) : Lanes{},
                          below && right ? load(from + (width + 1) * kLanes) : Lanes{}}};
  Lanes t[4][2];
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    t[0][j] = g[0][j];
    t[1][j] = (g[0][j] + g[1][j]) * half;
    t[2][j] = (g[0][j] - g[1][j]) * half;
    t[3][j] = g[1][j];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store(to + (4 * i + 0) * stride, t[i][0]);
    store(to + (4 * i + 1) * stride, (t[i][0] + t[i][1]) * half);
    store(to + (4 * i + 2) * stride, (t[i][0] - t[i][1]) * half);
    store(to + (4 * i + 3) * stride, t[i][1]);
  }
}

void transform_gradients(const ConvShape& shape, const WinogradPlane& plane, const float* dy, Share blocks,
                         Share tiles, float* points) {
  const std::int64_t count = tiles.end - tiles.begin;
  const std::int64_t stride = point_stride(shape.out_blocks * count * kLanes);
  const std::int64_t block_floats = shape.out_positions() * kLanes;
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    WinogradTile tile = tile_at(plane, tiles.begin);
    for (std::int64_t t = 0; t < count; ++t, advance(plane, tile)) {
      transform_gradient(dy + (tile.image * shape.out_blocks + b) * block_floats, shape.out[1], shape.out[2],
                         tile, points + (b * count + t) * kLanes, stride);
    }
  }
}

/// The 16 sums of one input channel and a block of output channels to the nine taps.
[[gnu::always_inline]] inline void transform_sums(const float* m, std::int64_t stride, float* dw) {
  Lanes t[3][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Lanes a = load(m + (4 + j) * stride);
    const Lanes b = load(m + (8 + j) * stride);
    t[0][j] = load(m + j * stride) + a + b;
    t[1][j] = a - b;
    t[2][j] = a + b - load(m + (12 + j) * stride);
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    store(dw + (3 * i + 0) * kLanes * kLanes, t[i][0] + t[i][1] + t[i][2]);
    store(dw + (3 * i + 1) * kLanes * kLanes, t[i][1] - t[i][2]);
    store(dw + (3 * i + 2) * kLanes * kLanes, t[i][1] + t[i][2] - t[i][3]);
  }
}

}  // namespace

void winograd_gradient(const WinogradGradient& conv) {
  const ConvShape& shape = conv.shape;
  const WinogradPlane plane(shape);
  const std::int64_t rounds = (plane.tiles + conv.block_tiles - 1) / conv.block_tiles;
  const std::int64_t m_stride = point_stride(shape.in_blocks * shape.out_blocks * kLanes * kLanes);
  float* v = conv.scratch;
  float* d = v + kPoints * point_stride(shape.in_blocks * conv.block_tiles * kLanes);
  float* m = d + kPoints * point_stride(shape.out_blocks * conv.block_tiles * kLanes);
  const std::int64_t groups = group_count(shape.out_blocks);
#pragma omp parallel
  {
    const Share in_share = my_share(shape.in_blocks);
    const Share out_share = my_share(shape.out_blocks);
    const Share items = my_share(kPoints * groups * shape.in_blocks);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const Share tiles{plane.tiles * round / rounds, plane.tiles * (round + 1) / rounds};
      const std::int64_t count = tiles.end - tiles.begin;
      transform_inputs(shape, plane, conv.x, shape.in_blocks, in_share, tiles, v);
      transform_gradients(shape, plane, conv.dy, out_share, tiles, d);
#pragma omp barrier
      const PositionRun all{0, 0, count};
      GradientTile tile{};
      tile.x_step = kLanes;
      tile.dy_block = count * kLanes;
      tile.runs = &all;
      tile.run_count = 1;
      tile.dw_block = shape.in_blocks * kLanes * kLanes;
      tile.first = round == 0;
      for (std::int64_t item = items.begin; item < items.end; ++item) {
        const std::int64_t point = item / (groups * shape.in_blocks);
        const Share blocks = group_blocks(shape.out_blocks, item / shape.in_blocks % groups);
        const std::int64_t in = item % shape.in_blocks;
        tile.dy = d + point * point_stride(shape.out_blocks * count * kLanes) + blocks.begin * count * kLanes;
        for (std::int64_t lane = 0; lane < kLanes; lane += kTileInputs) {
          tile.x = v + point * point_stride(shape.in_blocks * count * kLanes) + in * count * kLanes + lane;
          tile.dw =
              m + point * m_stride + (blocks.begin * shape.in_blocks + in) * kLanes * kLanes + lane * kLanes;
          sum_tile(tile, blocks.end - blocks.begin);
        }
      }
#pragma omp barrier
    }
    const Share pairs = my_share(shape.in_blocks * shape.out_blocks);
    for (std::int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
      for (std::int64_t i = 0; i < kLanes; ++i) {
        transform_sums(m + (pair * kLanes + i) * kLanes, m_stride,
                       conv.dw + (pair * 9 * kLanes + i) * kLanes);
      }
    }
  }
}

std::int64_t winograd_gradient_floats(const ConvShape& shape, std::int64_t block_tiles) {
  return kPoints * (point_stride(shape.in_blocks * block_tiles * kLanes) +
                    point_stride(shape.out_blocks * block_tiles * kLanes) +
                    point_stride(shape.in_blocks * shape.out_blocks * kLanes * kLanes));
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
