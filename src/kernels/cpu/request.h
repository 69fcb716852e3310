#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ir/graph.h"
#include "kernels/cpu/primitive_kernel.h"
#include "kernels/kernel.h"

namespace penstock::kernels::cpu {

/// An op that needs a kernel, as the family's selector sees it.
struct Request {
  const ir::Graph& graph;
  const ir::Op& op;
  std::span<const ir::Layout* const> given;  ///< null: not decided yet
  std::shared_ptr<const Engine> engine;

  const ir::Tensor& input(std::size_t i) const { return graph.tensor(op.inputs[i]); }
  const ir::Tensor& output(std::size_t i) const { return graph.tensor(op.outputs[i]); }
  const Dims& input_dims(std::size_t i) const { return input(i).shape.dims(); }
  const Dims& output_dims(std::size_t i) const { return output(i).shape.dims(); }
  /// The layout input `i` has now; plain if it has none.
  ir::Layout given_or_plain(std::size_t i) const { return given[i] != nullptr ? *given[i] : ir::Layout{}; }
  /// A selection with every layout plain, to be filled in.
  Selection plain_selection() const {
    Selection selection;
    selection.inputs.resize(op.inputs.size());
    selection.outputs.resize(op.outputs.size());
    return selection;
  }
};

/// Whether the library uses AVX-512 here: its vectors are then twice as wide as ours, and its products and
/// convolutions faster than our own.
bool has_wide_vectors();

using Variants = std::vector<std::shared_ptr<const Kernel>>;

Selection select_port(const Request& request);

Selection select_conv(const Request& request);
/// One of our own kernels, where there is one for the op in the layouts it is given.
std::optional<Selection> select_native_conv(const Request& request);
/// Small groups in blocks of sixteen channels, where the processor has AVX-512.
std::optional<Selection> select_grouped_conv(const Request& request);
/// A kernel on fewer and larger groups, where that is faster.
std::optional<Selection> select_merged_groups(const Request& request);
/// Implementations for the layouts the request gives (inputs) and the graph has (outputs).
Variants conv_variants(const Request& request);

Selection select_linear(const Request& request);
/// Products of our own: rows of sequences, weights that lie turned, some rows of a gradient.
bool has_own_linear(const Request& request);
Selection select_own_linear(const Request& request);
/// The same products by the library.
Selection select_wide_linear(const Request& request);
Selection select_matmul(const Request& request);
Selection select_bias(const Request& request);

Selection select_batch_norm(const Request& request);
Selection select_combine_statistics(const Request& request);
Selection select_statistics_update(const Request& request);

/// What transformers are made of.
Selection select_text(const Request& request);

Selection select_activation(const Request& request);
Selection select_pool(const Request& request);
Selection select_global_avg_pool(const Request& request);
/// The layout that global_avg_pool_backward's gradient takes: the one the pooled tensor had in forward, which
/// the op itself does not name.
ir::Layout pooled_layout(const Request& request);
Selection select_lrn(const Request& request);
Selection select_dropout(const Request& request);

Selection select_pointwise(const Request& request);
Selection select_concat(const Request& request);
Selection select_pad(const Request& request);
Selection select_upsample(const Request& request);
Selection select_reshape(const Request& request);
Selection select_transpose(const Request& request);
Selection select_softmax(const Request& request);

Selection select_program(const Request& request);
Selection select_reduce(const Request& request);
Selection select_index(const Request& request);

Selection select_nll(const Request& request);
Selection select_loss(const Request& request);
Selection select_update(const Request& request);

std::shared_ptr<const Kernel> make_reorder(const std::shared_ptr<const Engine>& engine,
                                           const ir::Tensor& tensor, const ir::Layout& from,
                                           const ir::Layout& to);

}  // namespace penstock::kernels::cpu
