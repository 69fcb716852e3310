#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel.h"
#include "lower/lower.h"

namespace penstock::measure {

/// What memory is placed and measured in.
inline constexpr std::int64_t kPlacedAlignment = 4096;

/// Bytes of an op's tensors and scratch, as they are placed.
std::int64_t placed_bytes(const lower::Executable& step, ir::OpId op, std::int64_t scratch_bytes);

/// An op on memory that is not its own, to be run as if in a step: what was made long before it, parameters
/// and state come from memory, what was made just before it may be in a cache.
class PlacedOp {
 public:
  PlacedOp(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel,
           std::span<std::byte> memory);

  /// Seconds of one run.
  double run();

 private:
  std::byte* place(std::int64_t size_bytes);

  const kernels::Kernel& kernel_;
  std::span<std::byte> memory_;  ///< not placed yet
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<std::span<std::byte>> cold_;
  kernels::StepContext context_;
  kernels::KernelArgs args_;
};

}  // namespace penstock::measure
