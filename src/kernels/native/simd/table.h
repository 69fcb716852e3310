#pragma once

#include <cstdint>

#include "kernels/native/channel_view.h"
#include "kernels/native/conv_shape.h"
#include "kernels/native/winograd.h"

namespace penstock::kernels::native {

/// y = x * scale + shift per channel, (+ z), (ReLU, its mask, or SiLU).
struct NormForward {
  ChannelView view;
  const float* x = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  const float* z = nullptr;  ///< null: nothing is added
  float* y = nullptr;
  std::uint8_t* mask = nullptr;  ///< null: not written
  float epsilon = 0;
  bool relu = false;
  float ceiling = 0;  ///< of the ReLU; 0: none
  bool silu = false;  ///< in place of the ReLU
};

struct NormBackward {
  ChannelView view;
  const float* x = nullptr;
  const float* dy = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;  ///< null: no SiLU
  const float* mean = nullptr;
  const float* variance = nullptr;
  const std::uint8_t* mask = nullptr;  ///< null: no ReLU
  float* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  float* dz = nullptr;        ///< null: nothing was added
  double* partial = nullptr;  ///< scratch, 2 * rows * block
  float epsilon = 0;
  // Where the view is a slice of the batch: of the whole.
  const float* whole_dgamma = nullptr;
  const float* whole_dbeta = nullptr;
  std::int64_t count = 0;  ///< elements per channel; 0: those of the view
};

struct SgdStep {
  std::int64_t count = 0;
  const float* p = nullptr;
  const float* gradient = nullptr;
  const float* m = nullptr;  ///< null: no momentum
  float* p_out = nullptr;
  float* m_out = nullptr;
  float gradient_scale = 1;
  float learning_rate = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

struct AdamStep {
  std::int64_t count = 0;
  const float* p = nullptr;
  const float* gradient = nullptr;
  const float* m = nullptr;
  const float* v = nullptr;
  float* p_out = nullptr;
  float* m_out = nullptr;
  float* v_out = nullptr;
  float gradient_scale = 1;
  float beta1 = 0, beta2 = 0, epsilon = 0;
  float weight_decay = 0;  ///< added to the gradient
  float keep = 1;          ///< AdamW: what the weights are multiplied by first
  /// Where moments are bfloat16, these in place of m and v, and of m_out and v_out.
  const std::uint16_t* m16 = nullptr;
  const std::uint16_t* v16 = nullptr;
  std::uint16_t* m16_out = nullptr;
  std::uint16_t* v16_out = nullptr;
  std::uint32_t random[4] = {};     ///< CounterRandom::key()
  std::uint64_t first_element = 0;  ///< of the random stream
  float step_size = 0;              ///< learning rate / (1 - beta1^t)
  float correction2_root = 1;       ///< sqrt(1 - beta2^t)
};

struct ConvGradient {
  /// Positions summed at a stretch: what stays in the first-level cache.
  static constexpr std::int64_t kChunkPositions = 192;
  struct Run {
    std::int64_t x = 0, dy = 0, count = 0;
  };

  ConvShape shape;
  const float* x = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
  void* scratch = nullptr;         ///< `threads` times `scratch_bytes`
  std::int64_t scratch_bytes = 0;  ///< gradient_scratch_bytes()
  int threads = 1;                 ///< at most so many
};

/// The largest number of positions that a chunk of conv_gradient() has.
inline std::int64_t chunk_positions(const ConvShape& shape) {
  return shape.out[2] > ConvGradient::kChunkPositions ? shape.out[2] : ConvGradient::kChunkPositions;
}
/// Scratch of one thread: runs of positions and their number, for each tap.
inline std::int64_t gradient_scratch_bytes(const ConvShape& shape) {
  const auto run_bytes = static_cast<std::int64_t>(sizeof(ConvGradient::Run));
  return (shape.taps() * (chunk_positions(shape) * run_bytes + 8) + 63) / 64 * 64;
}

/// The loops worth the processor's widest vectors. The same sources are compiled once for the baseline and
/// once for AVX2 with FMA; simd() says which the processor can run. All are parallel over the caller's OpenMP
/// threads, each writes every element by itself, and sums do not depend on the number of threads.
struct SimdTable {
  /// `partial`: scratch, 2 * rows * block.
  void (*norm_statistics)(const ChannelView& view, const float* x, double* partial, float* mean,
                          float* variance);
  void (*norm_forward)(const NormForward& norm);
  void (*norm_backward)(const NormBackward& norm);
  /// The two halves of norm_backward(): dgamma and dbeta, and dz; dx from these.
  void (*norm_backward_sums)(const NormBackward& norm);
  void (*norm_backward_data)(const NormBackward& norm);
  void (*add_bias)(const ChannelView& view, const float* x, const float* bias, float* y);
  /// Sum of each channel; `partial`: scratch, rows * block.
  void (*channel_sums)(const ChannelView& view, const float* x, double* partial, float* sums);
  /// [N, C] plain from a view, and back.
  void (*global_average)(const ChannelView& view, const float* x, float* y);
  void (*global_average_backward)(const ChannelView& view, const float* dy, float* dx);
  void (*add)(std::int64_t count, const float* a, const float* b, float* y);
  void (*multiply)(std::int64_t count, const float* a, const float* b, float* y);
  /// slope 0: ReLU.
  void (*leaky_relu)(std::int64_t count, float slope, const float* x, float* y);
  void (*leaky_relu_backward)(std::int64_t count, float slope, const float* y, const float* dy, float* dx);
  void (*sgd)(const SgdStep& step);
  void (*adam)(const AdamStep& step);
  void (*conv_gradient)(const ConvGradient& conv);
  WinogradTable winograd;
  bool has_fma;  ///< whether the convolutions are worth their while
};

const SimdTable& simd();

}  // namespace penstock::kernels::native
