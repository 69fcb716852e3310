#include "run/op_launcher.h"

namespace penstock::run {

void OpLauncher::prepare(const lower::Executable& step, ir::OpId op, std::int32_t variant,
                         const kernels::StepContext& context) {
  const ir::Op& node = step.graph.op(op);
  inputs_.clear();
  outputs_.clear();
  for (const ir::TensorId t : node.inputs)
    inputs_.push_back(residency_.input_address(step.graph.tensor(t).storage));
  for (const ir::TensorId t : node.outputs) {
    outputs_.push_back(residency_.address(step.graph.tensor(t).storage));
  }
  kernel_ = &step.kernel(op, variant);
  args_.inputs = inputs_;
  args_.outputs = outputs_;
  args_.scratch = residency_.acquire_scratch(kernel_->scratch_bytes());
  args_.step = &context;
}

void OpLauncher::launch() {
  kernel_->run(args_);
}

void OpLauncher::finish() {
  residency_.release_scratch(kernel_->scratch_bytes());
  residency_.forget_adopted();
}

}  // namespace penstock::run
