#include "run/op_launcher.h"

namespace penstock::run {

void OpLauncher::launch(const lower::Executable& step, ir::OpId op, std::int32_t variant,
                        const kernels::StepContext& context) {
  const ir::Op& node = step.graph.op(op);
  inputs_.clear();
  outputs_.clear();
  for (const ir::TensorId t : node.inputs)
    inputs_.push_back(residency_.address(step.graph.tensor(t).storage));
  for (const ir::TensorId t : node.outputs) {
    outputs_.push_back(residency_.address(step.graph.tensor(t).storage));
  }
  const kernels::Kernel& kernel = step.kernel(op, variant);
  scratch_bytes_ = kernel.scratch_bytes();
  kernels::KernelArgs args;
  args.inputs = inputs_;
  args.outputs = outputs_;
  args.scratch = residency_.acquire_scratch(scratch_bytes_);
  args.step = &context;
  kernel.run(args);
}

void OpLauncher::wait() {
  residency_.release_scratch(scratch_bytes_);
  scratch_bytes_ = 0;
}

}  // namespace penstock::run
