#include "measure/placed_op.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"

namespace penstock::measure {
namespace {

/// Storages of an op's tensors with their sizes, each once.
std::map<ir::StorageId, std::int64_t> storages_of(const ir::Graph& graph, const ir::Op& op) {
  std::map<ir::StorageId, std::int64_t> sizes;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId t : *list) {
      std::int64_t& bytes = sizes[graph.tensor(t).storage];
      bytes = std::max(bytes, graph.tensor(t).size_bytes());
    }
  }
  return sizes;
}

/// Puts memory out of all caches.
void flush(std::span<const std::byte> memory) {
#ifdef __SSE2__
  for (std::size_t i = 0; i < memory.size(); i += 64) _mm_clflush(memory.data() + i);
  _mm_mfence();
#else
  static_cast<void>(memory);
#endif
}

}  // namespace

std::int64_t placed_bytes(const lower::Executable& step, ir::OpId op, std::int64_t scratch_bytes) {
  std::int64_t bytes = round_up(scratch_bytes, kPlacedAlignment);
  for (const auto& [storage, size] : storages_of(step.graph, step.graph.op(op)))
    bytes += round_up(size, kPlacedAlignment);
  return bytes;
}

PlacedOp::PlacedOp(const lower::Executable& step, ir::OpId op, const kernels::Kernel& kernel,
                   std::span<std::byte> memory)
    : kernel_(kernel), memory_(memory) {
  constexpr ir::OpId kLongBefore = 8;
  const ir::Op& node = step.graph.op(op);
  std::map<ir::StorageId, std::byte*> addresses;
  for (const auto& [storage, bytes] : storages_of(step.graph, node)) addresses[storage] = place(bytes);
  for (const ir::TensorId t : node.inputs) {
    const ir::Tensor& tensor = step.graph.tensor(t);
    const std::span<std::byte> data(addresses[tensor.storage], static_cast<std::size_t>(tensor.size_bytes()));
    // What an earlier kernel left behind may not be numbers, and as labels or indices it may be wrong.
    std::fill(data.begin(), data.end(), std::byte{0});
    inputs_.push_back(data.data());
    if (tensor.producer == ir::kNone || tensor.producer + kLongBefore < op) cold_.push_back(data);
  }
  for (const ir::TensorId t : node.outputs) outputs_.push_back(addresses[step.graph.tensor(t).storage]);
  args_.inputs = inputs_;
  args_.outputs = outputs_;
  args_.scratch = place(kernel.scratch_bytes());
  args_.step = &context_;
}

double PlacedOp::run() {
  for (const std::span<std::byte> data : cold_) flush(data);
  const double begin = clock_seconds();
  kernel_.run(args_);
  return clock_seconds() - begin;
}

std::byte* PlacedOp::place(std::int64_t size_bytes) {
  const auto bytes = static_cast<std::size_t>(round_up(size_bytes, kPlacedAlignment));
  require(bytes <= memory_.size(), "profiler: an op needs more memory than was said");
  std::byte* address = memory_.data();
  memory_ = memory_.subspan(bytes);
  return address;
}

}  // namespace penstock::measure
