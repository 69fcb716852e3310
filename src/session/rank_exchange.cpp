#include "session/rank_exchange.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"

namespace penstock::session {
namespace {

/// Where no budget is named. The same on all ranks: it decides the order of what they exchange.
constexpr std::int64_t kInMemoryFlight = kGiB;

dist::Exchange exchange_of(ir::ExchangeKind kind) {
  switch (kind) {
    case ir::ExchangeKind::all_reduce:
      return dist::Exchange::all_reduce;
    case ir::ExchangeKind::reduce_scatter:
      return dist::Exchange::reduce_scatter;
    case ir::ExchangeKind::all_gather:
      return dist::Exchange::all_gather;
  }
  throw InternalError("not an exchange");
}

}  // namespace

void RankExchanger::start(const ir::ExchangeAttrs& exchange, float* values, std::int64_t count) {
  communicator_.start(exchange.bucket, exchange_of(exchange.kind), values, count);
}

void RankExchanger::wait(const ir::ExchangeAttrs& exchange) {
  communicator_.wait(exchange.bucket);
}

lower::ExchangeOptions exchange_options(const RankOptions& options, const Ranks& ranks, bool has_budget) {
  lower::ExchangeOptions exchange;
  exchange.rank = ranks.rank();
  exchange.ranks = ranks.size();
  exchange.shard_optimizer = options.shard_optimizer;
  if (options.bucket_bytes > 0) exchange.bucket_bytes = options.bucket_bytes;
  // In memory, gradients on their way take the place of activations that backward has done with.
  if (!has_budget) exchange.in_flight_bytes = kInMemoryFlight;
  if (options.in_flight_bytes > 0) exchange.in_flight_bytes = options.in_flight_bytes;
  return exchange;
}

plan::LinkProfile link_profile(const dist::NetworkSpeed& speed, int ranks) {
  plan::LinkProfile profile;
  profile.ranks = ranks;
  if (ranks > 1) profile.bandwidth = speed.bandwidth;
  profile.latency_seconds = speed.latency_seconds;
  return profile;
}

void check_same_exchanges(Ranks& ranks, const ir::Graph& graph) {
  if (ranks.size() == 1) return;
  Sha256 sha;
  for (const ir::Op& op : graph.ops) {
    const bool starts = op.kind == ir::OpKind::reduce_start || op.kind == ir::OpKind::gather_start;
    if (!starts && op.kind != ir::OpKind::gather_wait) continue;
    // What a rank contributes to gather_start is its own affair.
    std::vector<ir::TensorId> tensors(op.outputs.begin(), op.outputs.end());
    if (op.kind == ir::OpKind::reduce_start)
      tensors.insert(tensors.end(), op.inputs.begin(), op.inputs.end());
    for (const ir::TensorId id : tensors) {
      const ir::Tensor& tensor = graph.tensor(id);
      const std::string text =
          fmt::format("{} {} {};", tensor.name, tensor.layout.tag(), tensor.size_bytes());
      sha.update(text.data(), text.size());
    }
  }
  const std::vector<std::string> all = ranks.communicator().all_gather(sha.finish());
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& text) { return text != all[0]; });
  ranks.together([&] {
    if (other == all.end()) return;
    throw UserError(fmt::format(
        "rank {} lays out its gradients unlike rank 0: all ranks need the same program and the same kind of "
        "processor",
        other - all.begin()));
  });
}

void take_statistics_of_rank_0(Ranks& ranks, StateIo& state) {
  if (ranks.size() == 1) return;
  std::vector<float> values;
  for (const StateEntry& entry : state.entries()) {
    if (entry.role != ir::Role::buffer) continue;
    const std::int64_t count = entry.shape.elements();
    values.resize(static_cast<std::size_t>(count));
    state.read(entry, [&](const float* from) { std::copy_n(from, count, values.data()); });
    ranks.communicator().broadcast(values.data(), count);
    if (ranks.rank() != 0) state.write(entry, [&](float* to) { std::copy_n(values.data(), count, to); });
  }
}

int threads_of_rank(Ranks& ranks) {
  const int allowed = omp_get_max_threads();
  if (ranks.size() == 1 || std::getenv("OMP_NUM_THREADS") != nullptr) return allowed;
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, std::min(allowed, cores / ranks.communicator().local_size()));
}

}  // namespace penstock::session
