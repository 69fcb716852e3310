#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// Logits [N, classes, ...] in plain order: `positions` labels an image.
struct LossShape {
  std::int64_t images = 0;
  std::int64_t classes = 0;
  std::int64_t positions = 1;
  std::int64_t count = 0;  ///< of what the mean is over; 0: of all labels here

  std::int64_t mean_count() const { return count > 0 ? count : images * positions; }
};

std::shared_ptr<const Kernel> make_cross_entropy(const LossShape& shape);
std::shared_ptr<const Kernel> make_cross_entropy_backward(const LossShape& shape);
std::shared_ptr<const Kernel> make_count_correct(const LossShape& shape);

}  // namespace penstock::kernels::native
