#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "run/executor.h"
#include "session/program.h"

namespace penstock::session {

/// One tensor of the state, as files and hashes see it: plain row-major float32 under its name.
struct StateEntry {
  std::string name;
  ir::Shape shape;
  ir::Role role = ir::Role::parameter;
  ir::TensorId tensor = ir::kNone;  ///< of sharded state: this rank's part, kNone if that is empty
  const lower::ShardedState* shard = nullptr;

  std::int64_t size_bytes() const { return shape.elements() * 4; }
};

/// Reads and writes the state between steps in plain layout, wherever it is and however the kernels keep it.
/// Takes one buffer as large as the largest state tensor that is not plain (conversion_bytes()); plain
/// tensors are handed out where they are.
///
/// Optimizer state that is sharded over ranks looks like any other, but it is brought together on rank 0: all
/// ranks must read it in the same order, and only rank 0 gets to see it. Takes another buffer then, as large
/// as a rank's largest part (shard_bytes()); the whole stands where parameters are gathered in a step.
class StateIo {
 public:
  /// `communicator` may be null where nothing is sharded.
  StateIo(const Program& program, run::Executor& executor, dist::Communicator* communicator = nullptr);

  /// Sorted by name.
  const std::vector<StateEntry>& entries() const { return entries_; }

  void read(const StateEntry& entry, const std::function<void(const float*)>& use);
  /// `fill` must write every element.
  void write(const StateEntry& entry, const std::function<void(float*)>& fill);

  /// On ranks that have no use for the state: their part in what rank 0 reads in the order of entries().
  void lend_shards();

  /// First values of every tensor: a function of the seed and the tensor's name.
  void initialise(std::uint64_t seed);
  /// SHA-256 over all tensors, sorted by name.
  std::string sha256();

  static std::vector<StateEntry> list(const ir::Graph& graph);
  static std::int64_t conversion_bytes(const ir::Graph& graph);
  static std::int64_t shard_bytes(const Program& program);

 private:
  float* conversion();
  void list_shards();
  void read_sharded(const StateEntry& entry, const std::function<void(const float*)>& use);
  void write_sharded(const StateEntry& entry, const std::function<void(float*)>& fill);
  void convert(const ir::Tensor& tensor, const ir::Layout& from_layout, const ir::Layout& to_layout,
               const void* from, void* to);

  const Program& program_;
  run::Executor& executor_;
  dist::Communicator* communicator_;
  std::vector<StateEntry> entries_;
  std::vector<float> own_;                            ///< this rank's part of a sharded state
  std::map<std::string, ir::StorageId> gathered_in_;  ///< by name of a bucket that parameters are gathered in
  std::unique_ptr<void, void (*)(void*)> buffer_;
  std::unique_ptr<void, void (*)(void*)> scratch_;
};

}  // namespace penstock::session
