#pragma once

#include <cstdint>

/// Attributes of the ops that transformers are made of.
namespace penstock::ir {

/// How queries, keys and values lie in memory; D is a head's width.
enum class AttentionLayout : std::uint8_t {
  packed,  ///< one tensor [B, S, (heads + 2 kv_heads) D]: queries, then keys, then values of a row
  rows,    ///< q[B, S, heads D], k and v[B, T, kv_heads D]: as linear layers make them
  heads,   ///< q[B, heads, S, D], k and v[B, kv_heads, T, D]
};
struct AttentionAttrs {
  AttentionLayout layout = AttentionLayout::packed;
  std::int64_t heads = 1, kv_heads = 1;  ///< heads / kv_heads queries' heads share one of keys and values
  bool causal = false;                   ///< query i sees keys 0 to i
  float scale = 1;
  float dropout = 0;              ///< of probabilities; drawn again from (seed, step, key, element)
  std::uint32_t key = 0;          ///< which dropout of the network
  std::int64_t first_sample = 0;  ///< of a micro-batch with dropout: as DropoutAttrs::first_sample
  bool operator==(const AttentionAttrs&) const = default;
};
/// Layer norm, or RMS norm: y = x / sqrt(mean(x^2) + epsilon) * gamma.
struct LayerNormAttrs {
  float epsilon = 1e-5F;
  bool rms = false;
  bool add = false;  ///< of x + z, which is an output as well
  bool operator==(const LayerNormAttrs&) const = default;
};
struct EmbeddingAttrs {
  std::int64_t begin = 0;  ///< first row of the weights' gradient; how many is the output's shape
  bool operator==(const EmbeddingAttrs&) const = default;
};
/// Pairs of a head's first `rotated` elements are turned by position times a frequency of the pair:
/// base ^ (-2 pair / rotated), divided by `factor`. Where `low_turns` and `high_turns` differ, only pairs
/// that turn fewer times than that within `original_length` are divided (Llama 3's rule).
struct RotaryAttrs {
  std::int64_t head_width = 0, rotated = 0;
  float base = 10000;
  bool interleaved = false;  ///< pairs lie side by side, else half of `rotated` apart
  bool inverse = false;      ///< turned back: its gradient
  float factor = 1;
  float low_turns = 0, high_turns = 0;
  std::int64_t original_length = 0;
  bool operator==(const RotaryAttrs&) const = default;
};
enum class Gate : std::uint8_t { silu, gelu, gelu_tanh };
const char* gate_name(Gate function);
struct GateAttrs {
  Gate function = Gate::silu;
  bool operator==(const GateAttrs&) const = default;
};
struct OutputLossAttrs {
  float smoothing = 0;     ///< share of a label that is spread over the vocabulary
  std::int64_t begin = 0;  ///< of the gradient: first row of dw; how many is dw's shape
  bool operator==(const OutputLossAttrs&) const = default;
};
struct ClipAttrs {
  float norm = 1;
  float weight = 1;  ///< what the sum of squares is multiplied by before its root is taken
  bool operator==(const ClipAttrs&) const = default;
};

}  // namespace penstock::ir
