#pragma once

#include <string>

#include "dist/communicator.h"
#include "dist/measure.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "penstock/options.h"
#include "penstock/ranks.h"
#include "plan/profile.h"
#include "session/state_io.h"

namespace penstock::session {

/// Lets the ops of a step talk to the other ranks. The communicator must outlive it. One thread.
class RankExchanger final : public kernels::Exchanger {
 public:
  explicit RankExchanger(dist::Communicator& communicator) : communicator_(communicator) {}

  void start(const ir::ExchangeAttrs& exchange, float* values, std::int64_t count) override;
  void wait(const ir::ExchangeAttrs& exchange) override;

 private:
  dist::Communicator& communicator_;
};

/// How the options say that gradients are exchanged. `has_budget`: whether memory is short.
lower::ExchangeOptions exchange_options(const RankOptions& options, const Ranks& ranks, bool has_budget);

/// What the planner sees of the network.
plan::LinkProfile link_profile(const dist::NetworkSpeed& speed, int ranks);

/// Throws UserError on all ranks if they do not lay out what they exchange in the same way: another
/// processor, another build. All ranks call it.
void check_same_exchanges(Ranks& ranks, const ir::Graph& graph);

/// Each rank has running statistics of its own samples; those of rank 0 are the network's. All take them.
void take_statistics_of_rank_0(Ranks& ranks, StateIo& state);

/// Compute threads of this rank where none are named: the cores that it is allowed, or its share of them.
int threads_of_rank(Ranks& ranks);

}  // namespace penstock::session
