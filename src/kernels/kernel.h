#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace penstock::kernels {

/// What ops that talk to other ranks call. One thread.
class Exchanger {
 public:
  virtual ~Exchanger() = default;
  /// Starts; until wait() returns the values belong to the network.
  virtual void start(const ir::ExchangeAttrs& exchange, float* values, std::int64_t count) = 0;
  virtual void wait(const ir::ExchangeAttrs& exchange) = 0;
};

/// What changes from step to step and is not a tensor. Owned by the caller of the step.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< from 0; Adam's t is step + 1
  double learning_rate = 0;
  std::int64_t first_sample =
      0;  ///< this rank's first sample's place in the whole batch: part of dropout's key
  /// Writes the value of the graph's input `input`: plain order, the port's dtype.
  std::function<void(int input, void* to)> feed;
  /// Reads the value of the graph's output `output`, likewise; may be empty where nobody wants any.
  std::function<void(int output, const void* from)> take;
  Exchanger* exchanger = nullptr;  ///< where the step has ops that need one
};

/// Pointers in the order of the op's inputs and outputs. An output may be the same address as an input where
/// lowering let them share.
struct KernelArgs {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* scratch = nullptr;  ///< scratch_bytes(), 64-byte aligned
  const StepContext* step = nullptr;
};

/// What runs an op: immutable once made, shared by all ops of the same description. run() may be called from
/// one thread at a time; it uses the OpenMP threads of its caller, and it allocates nothing that grows with
/// the tensors.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) const = 0;
  /// Bytes of scratch run() needs; the planner books them.
  virtual std::int64_t scratch_bytes() const { return 0; }
  /// Which implementation this is: "jit:avx2", "reference".
  virtual std::string implementation() const = 0;
  /// Whether output `output` may take the memory of input `input`.
  virtual bool can_overwrite(std::size_t output, std::size_t input) const {
    (void)output, (void)input;
    return false;
  }
};

/// A kernel and the layouts it wants. An op may have several variants (implementations); the first is the
/// default.
struct Selection {
  std::shared_ptr<const Kernel> kernel;
  std::vector<ir::Layout> inputs;   ///< lowering inserts a reorder where a tensor has another
  std::vector<ir::Layout> outputs;  ///< become the outputs' layouts
};

/// A family of kernels: chooses layouts and makes kernels. Not thread safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;

  /// The kernel for `op`. `given[i]` is the layout that input i has now, or null where it has none yet (a
  /// parameter before its first use: the kernel may choose freely, and the choice becomes the parameter's
  /// layout). Outputs that update state (they share its storage) must come out in the layout of the state's
  /// input.
  virtual Selection select(const ir::Graph& graph, const ir::Op& op,
                           std::span<const ir::Layout* const> given) = 0;

  /// All variants of the kernel for an op whose layouts are already fixed in the graph, the default first.
  virtual std::vector<std::shared_ptr<const Kernel>> variants(const ir::Graph& graph, const ir::Op& op) = 0;

  /// A kernel that copies `tensor` from layout `from` to layout `to`.
  virtual std::shared_ptr<const Kernel> reorder(const ir::Tensor& tensor, const ir::Layout& from,
                                                const ir::Layout& to) = 0;
};

std::unique_ptr<Backend> make_reference_backend();
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace penstock::kernels
