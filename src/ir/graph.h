#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/long_vector.h"
#include "base/rows.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace penstock::ir {

/// State across steps: the step finds it as `begin` and leaves it as `end` (the same tensor if nothing
/// updates it). Both share one storage.
struct Carried {
  TensorId begin = kNone;
  TensorId end = kNone;
};

/// A value that the caller of the step writes (input) or reads (output). All graphs that are made of one
/// network number its ports alike; one that a graph has no use for has no tensor there.
struct Port {
  std::string name;
  TensorId tensor = kNone;
  bool evaluation_only = false;  ///< of an output: training neither computes nor holds it
  /// An input may come in parts along its first axis. Each part is a port of its own behind all others, which
  /// says whose part it is and where it begins; the whole then has no tensor.
  std::int32_t part_of = kNone;
  std::int64_t first = 0;
};

/// One whole step as a list of ops in execution order, every tensor explicit. Plain data: builders, autodiff
/// and lowering append to it or make a new one from it; verify() says whether it is sound.
struct Graph {
  std::string name;
  LongVector<Tensor> tensors;
  LongVector<Op> ops;
  std::vector<Carried> carried;
  StorageId storages = 0;

  std::vector<Port> inputs, outputs;
  TensorId loss = kNone;  ///< f32, one element: what training makes smaller

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }
  const Op& op(OpId id) const { return ops[static_cast<std::size_t>(id)]; }

  /// A tensor with a storage of its own.
  TensorId add_tensor(Name tensor_name, DType dtype, Shape shape, Role role);
  /// A state tensor; it is carried, unchanged until replace_carried() names what an op makes of it.
  TensorId add_state(Name tensor_name, Shape shape, Role role, Init init);
  /// A tensor that an input op brings into the step.
  TensorId add_input(std::string port_name, DType dtype, Shape shape);
  /// Appends an output op that lets the caller read `value` at this point of the step.
  void add_output(std::string port_name, TensorId value, bool evaluation_only = false);
  /// A tensor that takes over the storage of `old` (same dtype and shape): what an in-place op makes of it.
  TensorId add_successor(TensorId old, Name tensor_name);
  /// Says that the step leaves state `begin` as `end`.
  void replace_carried(TensorId begin, TensorId end);
  /// Appends an op; sets the outputs' producer.
  OpId add_op(Op op);

  /// The port's number; kNone where there is none of that name.
  std::int32_t find_input(const std::string& port_name) const;
  std::int32_t find_output(const std::string& port_name) const;
  /// The ports that bring input `port` in: itself, or its parts in order; none where nothing needs it.
  std::vector<std::int32_t> ports_of(std::int32_t port) const;
  /// Of the whole input; it must be one that something needs.
  Shape input_shape(std::int32_t port) const;
  DType input_dtype(std::int32_t port) const;

  /// One storage's size, in time proportional to all tensors; storage_sizes() gives all at once.
  std::int64_t storage_bytes(StorageId storage) const;
};

/// Bytes of each storage: those of its largest tensor.
LongVector<std::int64_t> storage_sizes(const Graph& graph);

/// For each tensor the ops that read it, in execution order.
Rows<OpId> consumers(const Graph& graph);

/// Throws InternalError that names the op or tensor if the graph is not sound: every input was written before
/// (or is state), every tensor is written once, shapes and dtypes fit the op, a tensor is not read after
/// another of its storage was written, each state's end shares its storage, ports and the ops that bring them
/// in and out agree.
void verify(const Graph& graph);

/// The graph as text: a line an op with its attributes, tensors, shapes, layouts; totals by role at the end.
std::string print(const Graph& graph);
/// The same in pieces: the text of a long step is larger than the step.
void print(const Graph& graph, const std::function<void(std::string_view)>& take);

}  // namespace penstock::ir
