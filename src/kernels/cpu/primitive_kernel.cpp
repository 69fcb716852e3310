#include "kernels/cpu/primitive_kernel.h"

#include <algorithm>

namespace penstock::kernels::cpu {

PrimitiveKernel::PrimitiveKernel(std::shared_ptr<const Engine> engine, const dnnl::primitive_desc_base& desc,
                                 dnnl::primitive primitive, const std::vector<Binding>& bindings,
                                 std::vector<std::pair<std::size_t, std::size_t>> overwrites)
    : engine_(std::move(engine)),
      primitive_(std::move(primitive)),
      overwrites_(std::move(overwrites)),
      implementation_(desc.impl_info_str()) {
  for (const Binding& binding : bindings) {
    dnnl::memory memory(binding.desc, engine_->cpu, DNNL_MEMORY_NONE);
    slots_.push_back({binding.output, binding.index, memory});
    arguments_.emplace(binding.argument, memory);
  }
  const MemoryDesc scratch = desc.scratchpad_desc();
  scratch_bytes_ = static_cast<std::int64_t>(scratch.get_size());
  scratch_ = dnnl::memory(scratch, engine_->cpu, DNNL_MEMORY_NONE);
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratch_);
}

void PrimitiveKernel::run(const KernelArgs& args) const {
  for (const Slot& slot : slots_) {
    // The library takes pointers to const for no argument; inputs are not written.
    void* address = slot.output ? args.outputs[slot.index] : const_cast<void*>(args.inputs[slot.index]);
    slot.memory.set_data_handle(address);
  }
  scratch_.set_data_handle(args.scratch);
  primitive_.execute(engine_->stream, arguments_);
}

bool PrimitiveKernel::can_overwrite(std::size_t output, std::size_t input) const {
  return std::find(overwrites_.begin(), overwrites_.end(), std::pair(output, input)) != overwrites_.end();
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

}  // namespace penstock::kernels::cpu
