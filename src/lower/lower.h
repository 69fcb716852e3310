#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/long_vector.h"
#include "ir/graph.h"
#include "kernels/kernel.h"

namespace penstock::lower {

/// Network -> the forward graph of a training step: outputs that only evaluation has are gone, with all that
/// nothing else needs. UserError where a batch norm would see one value a channel.
ir::Graph for_training(ir::Graph network);

/// Network -> the graph of an evaluation: dropout is gone, batch norm reads the running statistics where it
/// keeps any and leaves them as they are.
ir::Graph for_evaluation(ir::Graph network);

/// Forward graph -> forward graph: batch norm + ReLU, batch norm + add + ReLU, convolution or linear + ReLU
/// become one op, and so do slices that are all of a tensor and chains of ops for each element. Runs before
/// autodiff, which has a rule for the fused op, so that no pattern has to be found in the backward half.
ir::Graph fuse(const ir::Graph& forward);

/// Whole step -> whole step: what an op makes in one pass over memory of tensors that backward holds anyway
/// (batch norm, layer norm, programs, activations) is not held for backward but made again there, from the
/// same inputs by the same kernel, right before its first use. Costs about a hundredth of the step and saves
/// a sixth of the activations of a residual network and two thirds of MobileNet's, under every budget alike.
/// Values of less than `least_bytes` are held.
ir::Graph repeat_cheap(ir::Graph graph, std::int64_t least_bytes = 64 << 10);

/// Whole step -> whole step: the gradient of a linear layer's weight of more than two slices is made, and the
/// weight updated, in slices of rows, so that gradient and optimizer state are never whole in memory. The
/// slices depend on the weight's size alone, not on the budget.
ir::Graph slice_updates(ir::Graph graph, std::int64_t slice_bytes = std::int64_t{32} << 20);

/// Whether inputs of images come in a slice at a time, or whole (where accumulate() is to give each
/// micro-batch its own part of them).
enum class CutInputs : std::uint8_t { in_parts, whole };

struct BatchCut {
  std::int64_t slice_samples = 0;  ///< at most; 0, or not less than the batch: nothing is cut
  CutInputs inputs = CutInputs::in_parts;
  /// Regions of narrower ops run on slices of more samples. For a step that holds for its backward half what
  /// one region hands to the next: an evaluation would have to hold it for that alone.
  bool by_width = false;
};

/// Whole step, or evaluation -> the same on slices of the batch: what has samples is a storage for each
/// slice, and ops run slice by slice between the places where the whole batch must be known. Exact training
/// of the whole batch: sums, and the statistics of batch norm, are put together in a fixed order. Ops on one
/// vector a sample stay whole.
ir::Graph cut_batch(ir::Graph graph, const BatchCut& cut);

/// Samples of the slices that suit a network's widest op. They depend on the network, its batch and its
/// images alone, because the last bits of results depend on them. 0: the batch is not to be cut.
std::int64_t default_slice(const ir::Graph& network);

/// Whole step, or evaluation, on slices or not -> the same on bands of each image, or volume: so many of
/// equal numbers of rows. A convolution on a band also reads the rows beside it, which its neighbours have.
/// Exact as cut_batch() is. For one image that is too wide by itself. 1: nothing is cut.
ir::Graph cut_images(ir::Graph graph, std::int64_t bands);

/// Bands that suit a network whose batch is cut into slices of so many samples, by the network and its images
/// alone. 1: images are not to be cut, because a slice of one image is not too wide, or because what is wide
/// cannot be cut (convolutions that skip rows and overlap).
std::int64_t default_bands(const ir::Graph& network, std::int64_t slice_samples);

/// Whole step on a micro-batch -> whole step on `count` of them: forward and backward run on one micro-batch
/// after the other, gradients are added up in their order, and each update stands in the last one, where its
/// gradient is complete. Inputs are those of all micro-batches, one behind the other along the first axis;
/// so are outputs, but for the loss, which is the mean. Gradients are of that mean. Batch norm takes each
/// micro-batch by itself, and its running statistics change with each. 1: the same step.
ir::Graph accumulate(ir::Graph graph, std::int64_t count);

/// Optimizer state of which each rank holds a part: rank q has floats [bounds[q], bounds[q + 1]) of its
/// memory. In the graph the state is this rank's part, under the same name, or it is not there where that is
/// empty.
struct ShardedState {
  std::string name;
  ir::Shape shape;          ///< of the whole
  ir::Layout layout;        ///< of the whole
  std::string gathered_in;  ///< a tensor of the step that is large enough for the whole
  std::vector<std::int64_t> bounds;
};

/// A step that can be run: the graph with layouts, reorders and shared storages, and a kernel for each op.
struct Executable {
  ir::Graph graph;
  LongVector<std::shared_ptr<const kernels::Kernel>> kernels;  ///< by op
  LongVector<std::int64_t> scratch_bytes;                      ///< by op
  /// Other kernels for the ops, by op, the one above first; empty: those above are all.
  LongVector<std::vector<std::shared_ptr<const kernels::Kernel>>> variants;
  LongVector<LongVector<std::int64_t>> variant_scratch_bytes;  ///< by op and variant

  const kernels::Kernel& kernel(ir::OpId op, std::int32_t variant) const {
    const auto i = static_cast<std::size_t>(op);
    return variant == 0 ? *kernels[i] : *variants.at(i).at(static_cast<std::size_t>(variant));
  }
  std::vector<ShardedState> sharded;  ///< where the optimizer is sharded
};

/// How gradients are averaged over ranks. The result does not depend on the sizes.
struct ExchangeOptions {
  int rank = 0;
  int ranks = 1;
  /// Gradients travel together up to this; a larger one (half of it and more) alone, which saves copying it.
  std::int64_t bucket_bytes = 8 << 20;
  /// What may be on its way, and so in memory, before the oldest is waited for.
  std::int64_t in_flight_bytes = 32 << 20;
  bool shard_optimizer = false;  ///< each rank keeps and updates a part of the optimizer's state
};

struct LowerOptions {
  bool in_place = true;
  ExchangeOptions exchange = {};
  float clip_norm = 0;  ///< gradients are scaled down to this norm; 0: they are not
};

/// The output that has the norm of the gradients where they are clipped.
inline constexpr const char* kGradientNorm = "gradients.norm";

/// Chooses layouts and kernels (assign_layouts), puts exchanges between ranks before the updates
/// (exchange_gradients), has updates wait for the gradients' norm (clip_gradients), then shares storages
/// where an op may overwrite an input that nobody reads later (share_in_place). `fixed_state`: layouts of
/// state tensors by name that are already decided (the evaluation graph takes those of the training graph),
/// may be null.
Executable lower(const ir::Graph& graph, kernels::Backend& backend, const LowerOptions& options = {},
                 const Executable* fixed_state = nullptr);

/// Asks the backend for all variants of all kernels.
void add_variants(Executable& executable, kernels::Backend& backend);

/// Renumbers `other`'s storages so that its state has, by name, the storages of `main`'s, and everything else
/// lies beyond all of `main`'s: one pool of storages serves both graphs.
void share_state(Executable& other, const Executable& main);

}  // namespace penstock::lower
