#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "ir/check_op.h"
#include "ir/graph.h"

namespace penstock::ir {
namespace {

/// Walks the ops once and keeps, for each storage, the tensor that its memory holds at that point.
class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph),
        holder_(static_cast<std::size_t>(graph.storages), kNone),
        written_(graph.tensors.size(), false) {}

  void run() {
    for (const Tensor& tensor : graph_.tensors) check_tensor(tensor);
    for (const Carried& state : graph_.carried) enter(state);
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) step(static_cast<OpId>(i));
    for (const Carried& state : graph_.carried) leave(state);
    check_loss();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("graph {}: {}", graph_.name, what));
  }
  [[noreturn]] void fail_op(OpId id, const std::string& what) const {
    const Op& op = graph_.op(id);
    fail(fmt::format("op {} ({} {}): {}", id, op_name(op.kind), op.name, what));
  }
  bool exists(TensorId id) const { return id >= 0 && static_cast<std::size_t>(id) < graph_.tensors.size(); }
  TensorId& holder(TensorId id) { return holder_[static_cast<std::size_t>(graph_.tensor(id).storage)]; }

  void check_tensor(const Tensor& tensor) const {
    if (tensor.storage < 0 || tensor.storage >= graph_.storages)
      fail("tensor " + tensor.name + " has no storage");
    for (const std::int64_t extent : tensor.shape.dims()) {
      if (extent <= 0) fail(fmt::format("tensor {} is {}", tensor.name, tensor.shape.to_string()));
    }
  }

  void enter(const Carried& state) {
    if (!exists(state.begin) || !exists(state.end)) fail("a carried tensor does not exist");
    const Tensor& begin = graph_.tensor(state.begin);
    const Tensor& end = graph_.tensor(state.end);
    if (!is_state(begin.role)) fail("carried tensor " + begin.name + " is not state");
    if (begin.producer != kNone) fail("state " + begin.name + " enters the step and is written by an op");
    if (begin.storage != end.storage)
      fail(fmt::format("state {} ends in {}'s other storage", begin.name, end.name));
    if (begin.shape != end.shape || begin.dtype != end.dtype || !(begin.layout == end.layout)) {
      fail(fmt::format("state {} ends in {} of another shape or layout", begin.name, end.name));
    }
    if (holder(state.begin) != kNone) fail("state " + begin.name + " shares its storage with other state");
    holder(state.begin) = state.begin;
    written_[static_cast<std::size_t>(state.begin)] = true;
  }

  void step(OpId id) {
    const Op& op = graph_.op(id);
    for (const TensorId input : op.inputs) read(id, input);
    for (const TensorId output : op.outputs) {
      if (!exists(output)) fail_op(id, "an output does not exist");
    }
    const std::string problem = check_op(graph_, op);
    if (!problem.empty()) fail_op(id, problem);
    if (op.kind == OpKind::input) check_port(id, graph_.inputs, op.outputs[0]);
    if (op.kind == OpKind::output) check_port(id, graph_.outputs, op.inputs[0]);
    for (const TensorId output : op.outputs) write(id, output);
    // Two outputs in one storage: the later one drove out the earlier.
    for (const TensorId output : op.outputs) {
      if (holder(output) != output)
        fail_op(id, "two outputs share the storage of " + graph_.tensor(output).name);
    }
  }

  void read(OpId id, TensorId input) {
    if (!exists(input)) fail_op(id, "an input does not exist");
    const std::string& name = graph_.tensor(input).name;
    if (!written_[static_cast<std::size_t>(input)])
      fail_op(id, "reads " + name + ", which nothing wrote before");
    const TensorId held = holder(input);
    if (held != input) {
      fail_op(id, fmt::format("reads {}, whose storage {} has taken over", name, graph_.tensor(held).name));
    }
  }

  void write(OpId id, TensorId output) {
    const Tensor& tensor = graph_.tensor(output);
    if (written_[static_cast<std::size_t>(output)])
      fail_op(id, "writes " + tensor.name + ", which was written before");
    if (tensor.producer != id) fail_op(id, "is not the producer of its output " + tensor.name);
    written_[static_cast<std::size_t>(output)] = true;
    holder(output) = output;
  }

  void leave(const Carried& state) {
    const Tensor& end = graph_.tensor(state.end);
    if (holder(state.end) != state.end) {
      fail(fmt::format("state {} is not what its storage holds at the end", end.name));
    }
  }

  /// An op that brings a port in or out, and the port, name the same tensor.
  void check_port(OpId id, const std::vector<Port>& ports, TensorId tensor) {
    const std::int32_t port = graph_.op(id).attrs_as<PortAttrs>().port;
    if (port < 0 || static_cast<std::size_t>(port) >= ports.size()) fail_op(id, "there is no such port");
    if (ports[static_cast<std::size_t>(port)].tensor != tensor) fail_op(id, "its port has another tensor");
  }

  void check_loss() const {
    if (graph_.loss == kNone) return;
    if (!exists(graph_.loss)) fail("the loss does not exist");
    const Tensor& loss = graph_.tensor(graph_.loss);
    if (loss.dtype != DType::f32 || loss.shape.elements() != 1)
      fail(fmt::format("the loss is {}{}", dtype_name(loss.dtype), loss.shape.to_string()));
  }

  const Graph& graph_;
  std::vector<TensorId> holder_;
  std::vector<bool> written_;
};

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph).run();
}

}  // namespace penstock::ir
