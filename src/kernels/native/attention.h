#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// Where element d of row r of head h of sample b lies: b * batch + h * head + r * row + d floats on.
struct HeadSteps {
  std::int64_t batch = 0, head = 0, row = 0;
};

/// The key of a stream of CounterRandom, for loops that draw from it themselves.
struct RandomKey {
  std::uint32_t key0 = 0, key1 = 0, step = 0, op = 0;
};

enum class MaskKind : std::uint8_t { none, added, kept };

struct AttentionShape {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, width = 0;
  HeadSteps q, k, v, y;
  bool causal = false;  ///< query i sees keys 0 to i
  float scale = 1;
  MaskKind mask = MaskKind::none;
  HeadSteps mask_steps;  ///< in elements of the mask; 0 where it is the same for all
  float dropout = 0;
};

struct Attention {
  AttentionShape shape;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const void* mask = nullptr;  ///< float32 that is added to the scores, or u8 that is 0 where a key is hidden
  float* y = nullptr;
  float* logsum = nullptr;  ///< [batch, heads, queries]
  RandomKey random;
  std::int64_t first_sample = 0;  ///< of dropout's elements
  float* scratch = nullptr;       ///< `threads` times attention_floats()
  int threads = 1;                ///< at most so many
};

/// dq, dk and dv lie as q, k and v do, dy as y.
struct AttentionBackward {
  Attention forward;  ///< y and logsum are read
  const float* dy = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};

}  // namespace penstock::kernels::native
