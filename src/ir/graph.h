#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/tensor.h"

namespace penstock::ir {

/// State across steps: the step finds it as `begin` and leaves it as `end` (the same tensor if nothing
/// updates it). Both share one storage.
struct Carried {
  TensorId begin = kNone;
  TensorId end = kNone;
};

/// One whole step as a list of ops in execution order, every tensor explicit. Plain data: builders, autodiff
/// and lowering append to it or make a new one from it; verify() says whether it is sound.
struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<Carried> carried;
  StorageId storages = 0;

  TensorId images = kNone;
  TensorId labels = kNone;
  TensorId logits = kNone;
  TensorId loss = kNone;     ///< f32[1]: mean over the batch
  TensorId correct = kNone;  ///< s32[1]: evaluation only

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }
  const Op& op(OpId id) const { return ops[static_cast<std::size_t>(id)]; }

  /// A tensor with a storage of its own.
  TensorId add_tensor(std::string tensor_name, DType dtype, Shape shape, Role role);
  /// A state tensor; it is carried, unchanged until replace_carried() names what an op makes of it.
  TensorId add_state(std::string tensor_name, Shape shape, Role role, Init init);
  /// A tensor that takes over the storage of `old` (same dtype and shape): what an in-place op makes of it.
  TensorId add_successor(TensorId old, std::string tensor_name);
  /// Says that the step leaves state `begin` as `end`.
  void replace_carried(TensorId begin, TensorId end);
  /// Appends an op; sets the outputs' producer.
  OpId add_op(Op op);

  /// One storage's size, in time proportional to all tensors; storage_sizes() gives all at once.
  std::int64_t storage_bytes(StorageId storage) const;
};

/// Bytes of each storage: those of its largest tensor.
std::vector<std::int64_t> storage_sizes(const Graph& graph);

/// For each tensor the ops that read it, in execution order.
std::vector<std::vector<OpId>> consumers(const Graph& graph);

/// Throws InternalError that names the op or tensor if the graph is not sound: every input was written before
/// (or is state), every tensor is written once, shapes and dtypes fit the op, a tensor is not read after
/// another of its storage was written, each state's end shares its storage.
void verify(const Graph& graph);

/// The graph as text: a line an op with its attributes, tensors, shapes, layouts; totals by role at the end.
std::string print(const Graph& graph);

}  // namespace penstock::ir
