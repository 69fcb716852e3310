#include "kernels/native/exchange_kernels.h"

#include <cstring>

#include "base/error.h"
#include "base/slices.h"
#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {
namespace {

using ir::OpKind;

std::vector<std::int64_t> floats_of(const ir::Graph& graph, const ir::IdList& tensors) {
  std::vector<std::int64_t> counts;
  for (const ir::TensorId id : tensors) {
    counts.push_back(graph.tensor(id).size_bytes() / static_cast<std::int64_t>(sizeof(float)));
  }
  return counts;
}

void copy(const float* from, float* to, std::int64_t count) {
  if (from != to) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

Exchanger& exchanger(const KernelArgs& args) {
  require(args.step != nullptr && args.step->exchanger != nullptr, "the step has nobody to exchange with");
  return *args.step->exchanger;
}

/// What belongs to this rank of a bucket of `count` floats.
std::int64_t own_begin(const ir::ExchangeAttrs& attrs, std::int64_t count) {
  return rank_slice(count, attrs.rank, attrs.ranks).begin;
}

/// A bucket of one tensor is that tensor's memory.
Overwrites overwrites(std::size_t parts) {
  return parts == 1 ? Overwrites{{0, 0}} : Overwrites{};
}

std::shared_ptr<const Kernel> make_start(const ir::Graph& graph, const ir::Op& op) {
  const auto attrs = op.attrs_as<ir::ExchangeAttrs>();
  const std::int64_t count = floats_of(graph, op.outputs)[0];
  const std::vector<std::int64_t> parts = floats_of(graph, op.inputs);
  const std::int64_t begin = op.kind == OpKind::gather_start ? own_begin(attrs, count) : 0;
  return make_kernel(
      [attrs, count, parts, begin](const KernelArgs& args) {
        float* bucket = floats_out(args, 0);
        std::int64_t at = begin;
        for (std::size_t i = 0; i < parts.size(); at += parts[i++]) {
          copy(floats_in(args, i), bucket + at, parts[i]);
        }
        exchanger(args).start(attrs, bucket, count);
      },
      overwrites(op.kind == OpKind::reduce_start ? parts.size() : 0));
}

std::shared_ptr<const Kernel> make_wait(const ir::Graph& graph, const ir::Op& op) {
  const auto attrs = op.attrs_as<ir::ExchangeAttrs>();
  const std::int64_t count = floats_of(graph, op.inputs)[0];
  // Of whole tensors, but for parameters of which some elements were gathered.
  const bool gathers = op.kind == OpKind::gather_wait;
  const std::vector<std::int64_t> parts = gathers ? attrs.counts : floats_of(graph, op.outputs);
  const std::vector<std::int64_t> places =
      gathers ? attrs.begins : std::vector<std::int64_t>(parts.size(), 0);
  const bool own_part = attrs.kind == ir::ExchangeKind::reduce_scatter;
  const std::int64_t begin = own_part ? own_begin(attrs, count) : 0;
  return make_kernel(
      [attrs, parts, places, begin](const KernelArgs& args) {
        exchanger(args).wait(attrs);
        const float* bucket = floats_in(args, 0);
        std::int64_t at = begin;
        for (std::size_t i = 0; i < parts.size(); at += parts[i++]) {
          copy(bucket + at, floats_out(args, i) + places[i], parts[i]);
        }
      },
      overwrites(attrs.kind == ir::ExchangeKind::all_reduce ? parts.size() : 0));
}

std::shared_ptr<const Kernel> make_slice(const ir::Graph& graph, const ir::Op& op) {
  const std::int64_t begin = op.attrs_as<ir::SliceAttrs>().begin;
  const std::int64_t count = floats_of(graph, op.outputs)[0];
  return make_kernel([begin, count](const KernelArgs& args) {
    copy(floats_in(args, 0) + begin, floats_out(args, 0), count);
  });
}

std::shared_ptr<const Kernel> make_exchange(const ir::Graph& graph, const ir::Op& op) {
  switch (op.kind) {
    case OpKind::reduce_start:
    case OpKind::gather_start:
      return make_start(graph, op);
    case OpKind::reduce_wait:
    case OpKind::gather_wait:
      return make_wait(graph, op);
    default:
      return make_slice(graph, op);
  }
}

}  // namespace

bool is_exchange(OpKind kind) {
  return kind >= OpKind::reduce_start && kind <= OpKind::take_slice;
}

Selection select_exchange(const ir::Graph& graph, const ir::Op& op) {
  Selection selection;
  for (const ir::TensorId id : op.inputs) selection.inputs.push_back(graph.tensor(id).layout);
  for (const ir::TensorId id : op.outputs) selection.outputs.push_back(graph.tensor(id).layout);
  selection.kernel = make_exchange(graph, op);
  return selection;
}

}  // namespace penstock::kernels::native
