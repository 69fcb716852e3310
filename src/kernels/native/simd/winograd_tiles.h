#pragma once

#include "kernels/native/simd/channel_lanes.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/winograd_table.h"

/// Winograd's F(2x2, 3x3): 3x3 convolutions of stride one with 16 products for 4 results instead of 36. The
/// plane is cut into tiles of 2x2 results, which see 4x4 inputs. The coefficients are 1, -1 and 1/2, so that
/// rounding errors stay those of a plain sum.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kPoints = 16;

/// Tiles of all images, numbered image by image, row by row.
struct WinogradPlane {
  explicit WinogradPlane(const ConvShape& shape)
      : rows((shape.out[1] + 1) / 2),
        columns((shape.out[2] + 1) / 2),
        per_image(rows * columns),
        tiles(shape.images * per_image) {}
  std::int64_t rows, columns, per_image, tiles;
};

struct WinogradTile {
  std::int64_t image, row, column;  ///< of the first result
};

static inline WinogradTile tile_at(const WinogradPlane& plane, std::int64_t index) {
  const std::int64_t within = index % plane.per_image;
  return {index / plane.per_image, within / plane.columns * 2, within % plane.columns * 2};
}
static inline void advance(const WinogradPlane& plane, WinogradTile& tile) {
  tile.column += 2;
  if (tile.column < 2 * plane.columns) return;
  tile.column = 0;
  tile.row += 2;
  if (tile.row < 2 * plane.rows) return;
  tile.row = 0;
  ++tile.image;
}

/// Floats between the 16 points of `floats` floats each: not a multiple of a page, or they would meet in the
/// caches.
constexpr std::int64_t point_stride(std::int64_t floats) {
  return (floats + 63) / 64 * 64 + 16;
}

/// The 4x4 inputs of one block of channels at (row, column), zero outside, to the 16 points.
[[gnu::always_inline]] static inline void transform_input(const float* plane, std::int64_t height,
                                                          std::int64_t width, std::int64_t row,
                                                          std::int64_t column, float* to,
                                                          std::int64_t stride) {
  Lanes d[4][4];
  if (row >= 0 && column >= 0 && row + 4 <= height && column + 4 <= width) {
    const float* from = plane + (row * width + column) * kLanes;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) d[i][j] = load(from + (i * width + j) * kLanes);
    }
  } else {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const std::int64_t r = row + i;
        const std::int64_t c = column + j;
        const bool inside = r >= 0 && r < height && c >= 0 && c < width;
        d[i][j] = inside ? load(plane + (r * width + c) * kLanes) : Lanes{};
      }
    }
  }
  Lanes t[4][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    t[0][j] = d[0][j] - d[2][j];
    t[1][j] = d[1][j] + d[2][j];
    t[2][j] = d[2][j] - d[1][j];
    t[3][j] = d[1][j] - d[3][j];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store(to + (4 * i + 0) * stride, t[i][0] - t[i][2]);
    store(to + (4 * i + 1) * stride, t[i][1] + t[i][2]);
    store(to + (4 * i + 2) * stride, t[i][2] - t[i][1]);
    store(to + (4 * i + 3) * stride, t[i][1] - t[i][3]);
  }
}

/// Transforms tiles [begin, end) of all channel blocks: points[e][block][tile][lane].
static inline void transform_inputs(const ConvShape& shape, const WinogradPlane& plane, const float* x,
                                    std::int64_t blocks, Share blocks_share, Share tiles, float* points) {
  const std::int64_t count = tiles.end - tiles.begin;
  const std::int64_t stride = point_stride(blocks * count * kLanes);
  const std::int64_t block_floats = shape.in[1] * shape.in[2] * kLanes;
  for (std::int64_t b = blocks_share.begin; b < blocks_share.end; ++b) {
    WinogradTile tile = tile_at(plane, tiles.begin);
    for (std::int64_t t = 0; t < count; ++t, advance(plane, tile)) {
      transform_input(x + (tile.image * blocks + b) * block_floats, shape.in[1], shape.in[2],
                      tile.row - shape.padding[1], tile.column - shape.padding[2],
                      points + (b * count + t) * kLanes, stride);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
