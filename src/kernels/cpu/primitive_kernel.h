#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/memory_layout.h"
#include "kernels/kernel.h"

namespace penstock::kernels::cpu {

/// The library's engine and its in-order stream; shared by a backend and its kernels.
struct Engine {
  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{cpu};
};

/// Which argument of the primitive an input or output of the op is.
struct Binding {
  int argument = 0;
  bool output = false;
  std::size_t index = 0;
  MemoryDesc desc;
};

/// Runs one oneDNN primitive made with a scratchpad of the user's. Owns the primitive and the memory objects
/// whose addresses run() sets; one thread at a time.
class PrimitiveKernel : public Kernel {
 public:
  /// `overwrites`: pairs (output, input) that may share memory.
  PrimitiveKernel(std::shared_ptr<const Engine> engine, const dnnl::primitive_desc_base& desc,
                  dnnl::primitive primitive, const std::vector<Binding>& bindings,
                  std::vector<std::pair<std::size_t, std::size_t>> overwrites = {});

  void run(const KernelArgs& args) const override;
  std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return implementation_; }
  bool can_overwrite(std::size_t output, std::size_t input) const override;

 private:
  struct Slot {
    bool output = false;
    std::size_t index = 0;
    dnnl::memory memory;
  };

  std::shared_ptr<const Engine> engine_;
  dnnl::primitive primitive_;
  std::vector<Slot> slots_;
  dnnl::memory scratch_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<std::pair<std::size_t, std::size_t>> overwrites_;
  std::int64_t scratch_bytes_ = 0;
  std::string implementation_;
};

/// Attributes every primitive of ours is made with.
dnnl::primitive_attr user_scratchpad();

}  // namespace penstock::kernels::cpu
