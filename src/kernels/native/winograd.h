#pragma once

#include <cstdint>

#include "kernels/native/conv_shape.h"

namespace penstock::kernels::native {

/// A 3x3 convolution of stride one along the last two axes.
struct WinogradConv {
  ConvShape shape;
  bool turned = false;  ///< the weights are those of the convolution whose input gradient this is
  bool relu = false;
  const float* x = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< null: none
  float* y = nullptr;
  float* transformed = nullptr;     ///< scratch, WinogradTable::weight_floats()
  float* scratch = nullptr;         ///< `threads` times `scratch_floats`
  std::int64_t scratch_floats = 0;  ///< WinogradTable::thread_floats()
  std::int64_t block_tiles = 0;     ///< tiles that a thread works on at a time
  int threads = 1;                  ///< at most so many
};

/// The weights' gradient of such a convolution.
struct WinogradGradient {
  ConvShape shape;
  const float* x = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
  float* scratch = nullptr;      ///< WinogradTable::gradient_floats()
  std::int64_t block_tiles = 0;  ///< tiles that all threads work on at a time
};

/// Winograd's method for one width of vectors.
struct WinogradTable {
  std::int64_t lanes;        ///< channels of a block: those of a vector
  std::int64_t group_tiles;  ///< tiles that stay in registers at a time
  void (*conv)(const WinogradConv& conv);
  std::int64_t (*weight_floats)(const ConvShape& shape);
  std::int64_t (*thread_floats)(const ConvShape& shape, std::int64_t block_tiles);
  void (*gradient)(const WinogradGradient& conv);
  std::int64_t (*gradient_floats)(const ConvShape& shape, std::int64_t block_tiles);
};

}  // namespace penstock::kernels::native
