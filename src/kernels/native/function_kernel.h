#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace penstock::kernels::native {

/// Pairs (output, input) that may share memory.
using Overwrites = std::vector<std::pair<std::size_t, std::size_t>>;

/// A kernel that is one function of its arguments. The function holds whatever it needs by value.
class FunctionKernel : public Kernel {
 public:
  using Function = std::function<void(const KernelArgs& args)>;

  explicit FunctionKernel(Function function, Overwrites overwrites = {}, std::int64_t scratch_bytes = 0)
      : function_(std::move(function)), overwrites_(std::move(overwrites)), scratch_bytes_(scratch_bytes) {}

  void run(const KernelArgs& args) const override { function_(args); }
  std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return "native"; }
  bool can_overwrite(std::size_t output, std::size_t input) const override;

 private:
  Function function_;
  Overwrites overwrites_;
  std::int64_t scratch_bytes_;
};

std::shared_ptr<const Kernel> make_kernel(FunctionKernel::Function function, Overwrites overwrites = {},
                                          std::int64_t scratch_bytes = 0);

/// Null where the op has no such input or output.
inline const float* floats_in(const KernelArgs& args, std::size_t i) {
  return i < args.inputs.size() ? static_cast<const float*>(args.inputs[i]) : nullptr;
}
inline float* floats_out(const KernelArgs& args, std::size_t i) {
  return i < args.outputs.size() ? static_cast<float*>(args.outputs[i]) : nullptr;
}

}  // namespace penstock::kernels::native
