#pragma once

#include "kernels/native/simd/channel_lanes.h"
#include "kernels/native/simd/threads.h"

/// A tile of a product summed over positions: 4 input channels (8 where there are twice the registers) by up
/// to 3 blocks of output channels, held in registers while the positions go by.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kTileInputs = kLanes / 2;
inline constexpr std::int64_t kTileBlocks = 3;

using PositionRun = ConvGradient::Run;

struct GradientTile {
  const float* x;
  const float* dy;
  std::int64_t x_step;
  std::int64_t dy_block;  ///< floats between blocks of output channels
  const PositionRun* runs;
  std::int64_t run_count;
  float* dw;
  std::int64_t dw_block;
  bool first;  ///< dw holds nothing yet
};

template <int Blocks>
static void sum_tile(const GradientTile& tile) {
  Lanes sums[kTileInputs][Blocks];
  for (int i = 0; i < kTileInputs; ++i) {
    for (int v = 0; v < Blocks; ++v) {
      sums[i][v] = tile.first ? Lanes{} : load(tile.dw + v * tile.dw_block + i * kLanes);
    }
  }
  const std::int64_t dy_block = tile.dy_block;
  const auto position = [&](const float* x, const float* dy) __attribute__((always_inline)) {
    Lanes gradient[Blocks];
    for (int v = 0; v < Blocks; ++v) gradient[v] = load(dy + v * dy_block);
#pragma GCC unroll 8
    for (int i = 0; i < kTileInputs; ++i) {
      const Lanes value = broadcast(x[i]);
      for (int v = 0; v < Blocks; ++v) sums[i][v] += value * gradient[v];
    }
  };
  if (tile.run_count > 1 && tile.runs[0].count == 1) {
    for (std::int64_t r = 0; r < tile.run_count; ++r)
      position(tile.x + tile.runs[r].x, tile.dy + tile.runs[r].dy);
  } else {
    for (std::int64_t r = 0; r < tile.run_count; ++r) {
      const float* x = tile.x + tile.runs[r].x;
      const float* dy = tile.dy + tile.runs[r].dy;
      const float* end = dy + tile.runs[r].count * kLanes;
      for (; dy != end; x += tile.x_step, dy += kLanes) position(x, dy);
    }
  }
  for (int i = 0; i < kTileInputs; ++i) {
    for (int v = 0; v < Blocks; ++v) store(tile.dw + v * tile.dw_block + i * kLanes, sums[i][v]);
  }
}

/// A tile of one to three blocks.
static inline void sum_tile(const GradientTile& tile, std::int64_t blocks) {
  switch (blocks) {
    case 1:
      return sum_tile<1>(tile);
    case 2:
      return sum_tile<2>(tile);
    default:
      return sum_tile<3>(tile);
  }
}

/// Blocks of output channels in groups of three, the last ones in pairs rather than leave a single one.
static inline std::int64_t group_count(std::int64_t blocks) {
  return (blocks + kTileBlocks - 1) / kTileBlocks;
}
static inline Share group_blocks(std::int64_t blocks, std::int64_t group) {
  const std::int64_t groups = group_count(blocks);
  return {blocks * group / groups, blocks * (group + 1) / groups};
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
