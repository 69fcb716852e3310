#pragma once

#include "kernels/native/attention.h"
#include "kernels/native/grouped.h"
#include "kernels/native/rows.h"
#include "kernels/native/winograd.h"

namespace penstock::kernels::native {

/// Kernels that are made for AVX-512 alone, beside those of SimdTable and TextTable.
struct WideTable {
  void (*grouped_conv)(const GroupedConv& conv);
  void (*grouped_gradient)(const GroupedGradient& conv);
  void (*attention)(const Attention& attention);
  std::int64_t (*attention_floats)(const AttentionShape& shape);
  void (*attention_backward)(const AttentionBackward& attention);
  std::int64_t (*attention_backward_floats)(const AttentionShape& shape);
  void (*gelu)(GateFunction function, std::int64_t count, const float* x, float* y);
  void (*gelu_backward)(GateFunction function, std::int64_t count, const float* x, const float* dy,
                        float* dx);
  WinogradTable winograd;
};

/// Null where the processor has no AVX-512, or oneDNN is told not to use it (ONEDNN_MAX_CPU_ISA): one word
/// for all kernels.
const WideTable* wide();

}  // namespace penstock::kernels::native
