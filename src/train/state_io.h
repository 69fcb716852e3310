#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/executor.h"
#include "train/program.h"

namespace penstock::training {

/// One tensor of the state, as files and hashes see it: plain row-major float32 under its name.
struct StateEntry {
  std::string name;
  ir::Shape shape;
  ir::Role role = ir::Role::parameter;
  ir::TensorId tensor = ir::kNone;

  std::int64_t size_bytes() const { return shape.elements() * 4; }
};

/// Reads and writes the state between steps in plain layout, wherever it is and however the kernels keep it.
/// Takes one buffer as large as the largest state tensor that is not plain (conversion_bytes()); plain
/// tensors are handed out where they are.
class StateIo {
 public:
  StateIo(const Program& program, run::Executor& executor);

  /// Sorted by name.
  const std::vector<StateEntry>& entries() const { return entries_; }

  void read(const StateEntry& entry, const std::function<void(const float*)>& use);
  /// `fill` must write every element.
  void write(const StateEntry& entry, const std::function<void(float*)>& fill);

  /// First values of every tensor: a function of the seed and the tensor's name.
  void initialise(std::uint64_t seed);
  /// SHA-256 over all tensors, sorted by name.
  std::string sha256();

  static std::vector<StateEntry> list(const ir::Graph& graph);
  static std::int64_t conversion_bytes(const ir::Graph& graph);

 private:
  float* conversion();

  const Program& program_;
  run::Executor& executor_;
  std::vector<StateEntry> entries_;
  std::unique_ptr<void, void (*)(void*)> buffer_;
  std::unique_ptr<void, void (*)(void*)> scratch_;
};

}  // namespace penstock::training
