#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/program.h"

namespace penstock::kernels::native {

/// A step of a program that knows where its operands and its result lie: inputs first, then buffers.
struct ProgramStep {
  ir::Function function = ir::Function::constant;
  std::int16_t to = 0, a = 0, b = 0, c = 0;
  float value = 0;
};

/// How an input is walked beside the outputs, whose elements count up in the order of memory.
struct ProgramInput {
  static constexpr int kMaxDims = 8;
  ir::DType dtype = ir::DType::f32;
  bool whole = true;  ///< it has the outputs' elements in the outputs' order
  /// Otherwise: the outputs' extents, outermost first, and the input's stride along each.
  int dims = 0;
  std::int64_t extents[kMaxDims] = {};
  std::int64_t strides[kMaxDims] = {};
};

/// Runs the steps block by block: what lies between two steps stays in the first-level cache, so that a chain
/// of functions costs one pass over memory.
struct ProgramRun {
  static constexpr std::int64_t kBlock = 256;
  static constexpr int kMaxInputs = 24;
  static constexpr int kMaxBuffers = 64;

  std::int64_t count = 0;
  const ProgramStep* constants = nullptr;  ///< filled in once for each thread
  int constant_count = 0;
  const ProgramStep* steps = nullptr;
  int step_count = 0;
  const ProgramInput* inputs = nullptr;
  int input_count = 0;
  const void* const* in = nullptr;
  const std::int16_t* outputs = nullptr;  ///< where each output lies
  const ir::DType* output_types = nullptr;
  int output_count = 0;
  void* const* out = nullptr;
};

}  // namespace penstock::kernels::native
