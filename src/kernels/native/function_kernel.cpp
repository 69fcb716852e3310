#include "kernels/native/function_kernel.h"

#include <algorithm>

namespace penstock::kernels::native {

bool FunctionKernel::can_overwrite(std::size_t output, std::size_t input) const {
  return std::find(overwrites_.begin(), overwrites_.end(), std::pair(output, input)) != overwrites_.end();
}

std::shared_ptr<const Kernel> make_kernel(FunctionKernel::Function function, Overwrites overwrites,
                                          std::int64_t scratch_bytes) {
  return std::make_shared<FunctionKernel>(std::move(function), std::move(overwrites), scratch_bytes);
}

}  // namespace penstock::kernels::native
