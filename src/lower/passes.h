#pragma once

#include "ir/graph.h"
#include "lower/lower.h"

/// The passes that lower() is made of.
namespace penstock::lower {

/// The same graph without tensors that nothing names, and storages numbered from 0 without gaps.
ir::Graph compact(ir::Graph graph);
/// The same graph without the ops that are `gone`, by their index, and compact.
ir::Graph without_ops(ir::Graph graph, const std::vector<bool>& gone);

/// Takes away the ops that lead neither to an output nor to an update of state, and the tensors of ports that
/// no op brings in or out any more. State stays, used or not: all graphs of a network have the same.
ir::Graph prune(ir::Graph graph);

/// Slices that together are all of a tensor (queries, keys and values; the two parts of a roll) become one
/// split, whose gradient is one concat. The gradient of each slice by itself is as large as the whole.
ir::Graph join_slices(ir::Graph forward);

/// Linear layers and attentions read what was only turned or cut (transposed rows, heads, queries beside
/// keys) where it lies, so that nothing is moved: PyTorch's modules turn batch and sequence, heads and
/// sequence, and back. Only where nobody wants the result in the order that it had.
ir::Graph read_in_place(ir::Graph forward);

/// Chains of ops that work element by element become one op with one program, so that what lies between is
/// never written to memory. Only chains with a `pointwise` op in them: networks without keep their bits.
ir::Graph fuse_programs(ir::Graph forward);

/// Asks the backend for each op's kernel in turn, gives its outputs the layouts it wants and inserts a
/// reorder before an op whose input has another layout. A reordered tensor serves all later ops that want it
/// so; a reordered parameter only those of the same phase, so that it is not kept from forward to backward.
Executable assign_layouts(const ir::Graph& graph, kernels::Backend& backend, const Executable* fixed_state);

/// Adds an op behind the others, with its kernel, or with the one that the backend has for the layouts that
/// the op's inputs lie in.
void append_op(Executable& executable, ir::Op op, std::shared_ptr<const kernels::Kernel> kernel);
void append_op(Executable& executable, kernels::Backend& backend, ir::Op op);

/// Averages each gradient over the ranks before its update. Updates move back: gradients start on their way
/// in buckets, in the order in which backward completes them, and an update waits for its own bucket only, as
/// late as the options allow.
void exchange_gradients(Executable& executable, kernels::Backend& backend, const ExchangeOptions& options);

/// Scales all gradients by one factor, so that their norm over all parameters is at most that of the options.
/// The squares of a gradient are summed where it is complete; the updates, which otherwise stand there, come
/// behind the last one, and until then gradients are storages that a plan may swap. The norm becomes an
/// output. With ranks it is that of the averaged gradient, where the optimizer is sharded put together of the
/// ranks' parts.
void clip_gradients(Executable& executable, kernels::Backend& backend, const LowerOptions& options);

/// Lets an output take the storage of an input that its kernel may overwrite and that nobody reads later.
void share_in_place(Executable& executable);

}  // namespace penstock::lower
