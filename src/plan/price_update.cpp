#include "plan/price_update.h"

#include <algorithm>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

constexpr double kLowest = 0.02, kHighest = 4;
constexpr double kRaise = 0.25, kDecay = 0.9;

/// A transfer of the timeline.
struct Moved {
  double start_seconds, end_seconds;
  ir::OpId use;  ///< the op that had to wait for it, or would have had to
  double stall_seconds;
};

void raise(LongVector<double>& prices, ir::OpId first, ir::OpId last, double amount) {
  for (ir::OpId op = std::max(first, 0); op <= last && op < static_cast<ir::OpId>(prices.size()); ++op) {
    prices[static_cast<std::size_t>(op)] = std::min(kHighest, prices[static_cast<std::size_t>(op)] + amount);
  }
}

}  // namespace

double update_prices(const Simulation& simulation, TransferPrices& prices) {
  for (auto* of : {&prices.write, &prices.read}) {
    for (double& price : *of) price = std::max(kLowest, kDecay * price);
  }
  // First runs of ops in order tell the time of each op.
  LongVector<double> start_seconds;
  LongVector<Moved> reads, writes;
  double waiting = 0, stall_seconds = 0;
  for (const TimelineEvent& event : simulation.timeline) {
    const auto next_op = static_cast<ir::OpId>(start_seconds.size());
    if (event.action == Action::run) {
      if (!event.repeated) start_seconds.push_back(event.start_seconds);
    } else if (event.action == Action::wait) {
      waiting = event.end_seconds - event.start_seconds;
      stall_seconds += waiting;
    } else {
      auto& lane = event.action == Action::swap_in ? reads : writes;
      lane.push_back({event.start_seconds, event.end_seconds, next_op, waiting});
      waiting = 0;
    }
  }
  const auto op_at = [&](double seconds) {
    const auto after = std::upper_bound(start_seconds.begin(), start_seconds.end(), seconds);
    return static_cast<ir::OpId>(after - start_seconds.begin()) - 1;
  };
  for (auto* lane : {&reads, &writes}) {
    std::stable_sort(lane->begin(), lane->end(),
                     [](const Moved& a, const Moved& b) { return a.start_seconds < b.start_seconds; });
    for (std::size_t i = 0; i < lane->size();) {
      std::size_t end = i;
      double busy_until = (*lane)[i].end_seconds, stalled = 0;
      ir::OpId first_use = (*lane)[i].use, last_use = first_use, first_of_all = first_use,
               last_of_all = first_use;
      for (; end < lane->size() && (*lane)[end].start_seconds <= busy_until + 1e-6; ++end) {
        const Moved& moved = (*lane)[end];
        busy_until = std::max(busy_until, moved.end_seconds);
        first_of_all = std::min(first_of_all, moved.use);
        last_of_all = std::max(last_of_all, moved.use);
        // What lies behind the last stall of the period kept nobody waiting.
        if (moved.stall_seconds > 0) {
          stalled += moved.stall_seconds;
          first_use = first_of_all;
          last_use = last_of_all;
        }
      }
      if (stalled > 0) {
        const double busy_seconds = busy_until - (*lane)[i].start_seconds;
        const double amount = kRaise * std::min(1.0, 4 * stalled / (busy_seconds + 1e-12)) + 0.02;
        if (lane == &reads) {
          raise(prices.read, first_use, last_use, amount);
        } else {
          raise(prices.write, op_at((*lane)[i].start_seconds), op_at(busy_until), amount);
        }
      }
      i = end;
    }
  }
  return stall_seconds;
}

}  // namespace penstock::plan
