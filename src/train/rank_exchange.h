#pragma once

#include <string>

#include "dist/communicator.h"
#include "dist/measure.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "penstock/penstock.h"
#include "plan/profile.h"
#include "train/state_io.h"

namespace penstock::training {

/// Lets the ops of a step talk to the other ranks. The communicator must outlive it. One thread.
class RankExchanger final : public kernels::Exchanger {
 public:
  explicit RankExchanger(dist::Communicator& communicator) : communicator_(communicator) {}

  void start(const ir::ExchangeAttrs& exchange, float* values, std::int64_t count) override;
  void wait(const ir::ExchangeAttrs& exchange) override;

 private:
  dist::Communicator& communicator_;
};

/// How the options say that gradients are exchanged. Throws UserError.
lower::ExchangeOptions exchange_options(const Options& options, const Ranks& ranks);

/// What the planner sees of the network.
plan::LinkProfile link_profile(const dist::NetworkSpeed& speed, int ranks);

/// Throws UserError on all ranks if they do not lay out what they exchange in the same way: another
/// processor, another build. All ranks call it.
void check_same_exchanges(Ranks& ranks, const ir::Graph& graph);

/// The mean of what each rank gives; all ranks call it and get the same.
double mean_over_ranks(Ranks& ranks, double value);
std::int64_t sum_over_ranks(Ranks& ranks, std::int64_t value);
/// What each rank gives, by rank.
std::vector<std::int64_t> of_all_ranks(Ranks& ranks, std::int64_t value);

/// Each rank has running statistics of its own samples; those of rank 0 are the network's. All take them.
void take_statistics_of_rank_0(Ranks& ranks, StateIo& state);

/// Compute threads of this rank where none are named: the cores that it is allowed, or its share of them.
int threads_of_rank(Ranks& ranks);

}  // namespace penstock::training
