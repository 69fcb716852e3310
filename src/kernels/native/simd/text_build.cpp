#include "kernels/native/simd/text_loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const TextTable& text_table();

const TextTable& text_table() {
  static constexpr TextTable kTable{product,
                                    product_floats,
                                    attention,
                                    attention_floats,
                                    attention_backward,
                                    attention_backward_floats,
                                    row_norm,
                                    row_norm_backward,
                                    column_sums,
                                    gate,
                                    gate_backward,
                                    gelu,
                                    gelu_backward,
                                    add_logits,
                                    logit_gradients};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
