#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/error.h"
#include "base/openmp.h"
#include "base/text_file.h"
#include "base/threads.h"
#include "dist/communicator.h"
#include "fit/fit_json.h"
#include "memory/process.h"
#include "plan/budget_error.h"
#include "report/explain.h"
#include "session/describe.h"
#include "session/fitting.h"
#include "session/optimizer.h"
#include "session/rank_exchange.h"

namespace penstock {
namespace session {
namespace {

/// So many slices say how much more each takes.
constexpr std::int64_t kManySlices = 16;
/// What ForecastRequest::explain calls the smallest budget.
constexpr const char* kSmallest = "smallest";
/// Where the search for the largest batch ends.
constexpr std::int64_t kLargestBatch = 1 << 20;
/// The largest batch is named within this factor where it follows from the step on a smaller one.
constexpr double kNearEnough = 1.03;

/// Of all that is carried from step to step.
std::int64_t state_bytes(const ir::Graph& graph) {
  std::int64_t bytes = 0;
  for (const ir::Carried& carried : graph.carried)
    bytes += plan::place_bytes(graph.tensor(carried.begin).size_bytes());
  return bytes;
}

/// One forecast, from a network and options to a table.
class Forecaster {
 public:
  Forecaster(const NetworkOfBatch& network, std::int64_t batch, const Optimizer& optimizer,
             const SessionOptions& options)
      : network_(network),
        batch_(batch),
        optimizer_(optimizer),
        options_(options),
        ranks_(options.ranks.ranks ? options.ranks.ranks : std::make_shared<Ranks>(dist::make_alone())),
        threads_(options.threads > 0 ? options.threads : threads_of_rank(*ranks_)),
        scope_(threads_),
        resident_before_bytes_(process_memory().resident_bytes),
        paged_memory_(paged_memory(options.memory)),
        program_(program_of(batch)),
        fitting_(fitting_of(program_)) {
    check(optimizer);
  }

  /// The largest batch from `low`, which fits, up to below `high`, which does not.
  std::int64_t largest_between(std::int64_t low, std::int64_t high) const {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (batch_fits(middle) ? low : high) = middle;
    }
    return low;
  }

  ForecastTable table(const ForecastRequest& request) {
    ForecastTable table;
    table.threads = threads_;
    table.in_memory_step_seconds = fitting_.in_memory_seconds();
    table.profile_source = fitting_.profile_source();
    table.in_memory_bytes = fitting_.in_memory_bytes();
    table.smallest_bytes = fitting_.smallest_budget();
    if (request.explain == kSmallest) table.explanation = fitting_.explain_smallest(table.smallest_bytes);
    const std::vector<std::int64_t> all = budgets(table);
    table.budgets.resize(all.size());
    fitting_.prepare();
    for_each_index(threads_, all.size(),
                   [&](std::size_t i) { table.budgets[i] = row(all[i], request, table); });
    if (request.largest_batch) {
      const std::int64_t largest = largest_batch(table);
      table.largest_batch = largest == kAnyBatch ? largest : options_.accumulate * largest;
    }
    return table;
  }

 private:
  Program program_of(std::int64_t batch) const {
    ProgramRequest request;
    request.optimizer = &optimizer_;
    request.evaluation = options_.evaluation;
    request.variants = options_.memory.dynamic_kernels;
    request.accumulate = options_.accumulate;
    request.repeat_cheap = options_.memory.repeat_cheap;
    request.exchange = exchange_options(options_.ranks, *ranks_, options_.memory.budget_bytes > 0);
    const Network network = network_(batch);
    request.slice_samples = slice_samples(network, options_.memory);
    request.bands = options_.memory.bands;
    Program program = make_program(network, request);
    malloc_trim(0);
    return program;
  }

  Fitting fitting_of(const Program& program) const { return fitting_of(program, options_); }
  Fitting fitting_of(const Program& program, const SessionOptions& options) const {
    return Fitting(program, options, threads_, resident_before_bytes_,
                   available_memory_bytes() / ranks_->communicator().local_size(),
                   ranks_->communicator().growth_bytes(), link_profile({}, ranks_->size()),
                   ranks_->communicator().local_size(), paged_memory_.works());
  }

  /// The named one, or some from the smallest to what all in memory takes.
  std::vector<std::int64_t> budgets(const ForecastTable& table) const {
    if (options_.memory.budget_bytes > 0) return {options_.memory.budget_bytes};
    const std::int64_t most = round_up(table.in_memory_bytes + kUnsteadyBytes, kMiB);
    std::vector<std::int64_t> all;
    for (const double share : {0.0, 0.1, 0.25, 0.5, 0.75}) {
      const auto more = static_cast<std::int64_t>(static_cast<double>(most - table.smallest_bytes) * share);
      const std::int64_t budget = round_up(table.smallest_bytes + more, kMiB);
      if (budget < most && (all.empty() || budget > all.back())) all.push_back(budget);
    }
    all.push_back(most);
    return all;
  }

  Forecast row(std::int64_t budget, const ForecastRequest& request, ForecastTable& table) {
    Forecast none;
    none.budget_bytes = budget;
    none.scope = options_.memory.scope;
    try {
      const fit::Fit fit = fitting_.fit_within(budget);
      if (!request.explain.empty() && request.explain != kSmallest)
        table.explanation =
            report::explain(fit.training->problem, fit.training->plan, *fit.profile, request.explain);
      if (!request.plan_file.empty())
        write_file(request.plan_file, fit::fit_to_json(program_.steps(), fit, program_.state_graph().name,
                                                       options_.accumulate * batch_));
      return describe(fit, options_.memory.scope, fitting_.profile_source(), table.in_memory_step_seconds);
    } catch (const plan::BudgetError& error) {
      none.swap_file_bytes = error.needed_tier_bytes();
      return none;
    }
  }

  bool batch_fits(std::int64_t batch) const {
    if (batch == batch_) return fitting_.fits(options_.memory.budget_bytes - kUnsteadyBytes);
    try {
      const Program program = program_of(batch);
      return fitting_of(program).fits(options_.memory.budget_bytes - kUnsteadyBytes);
    } catch (const UserError&) {
      return false;  // Such a batch cannot be built.
    }
  }

  std::int64_t largest_batch(ForecastTable& table) const {
    std::int64_t low = batch_;
    if (!batch_fits(batch_)) return largest_between(0, batch_);
    while (low < kLargestBatch && batch_fits(2 * low)) {
      low *= 2;
      if (const std::int64_t slice = slice_samples(network_(low), options_.memory);
          slice > 0 && low / slice >= kManySlices)
        return largest_of_slices(low, table);
    }
    return largest_between(low, 2 * low);
  }

  /// Where the batch is in many slices, each needs as much more as any other: of the process, for its
  /// description, and on the tier. What tensors need in memory stays the same.
  std::int64_t largest_of_slices(std::int64_t batch, ForecastTable& table) const {
    // One after the other: each measures the process with its program in it, and not the other's.
    const std::int64_t half = batch / 2;
    const std::int64_t smallest_of_half = [&] {
      const Program program = program_of(half);
      return fitting_of(program).smallest_budget();
    }();
    const Program program = program_of(batch);
    const std::int64_t whole = fitting_of(program).smallest_budget();
    const double each = static_cast<double>(whole - smallest_of_half) / static_cast<double>(batch - half);
    const auto left = static_cast<double>(options_.memory.budget_bytes - whole);
    if (left <= 0) return batch;
    const bool any = each <= 0 || left / each > static_cast<double>(kLargestBatch);
    std::int64_t high = any ? kLargestBatch : batch + static_cast<std::int64_t>(left / each);
    const auto fits = [&](std::int64_t of) {
      return fits_in_proportion(program, batch, of, std::max(0.0, each));
    };
    if (fits(high)) return any ? kAnyBatch : high;
    table.swap_space_bytes = fitting_.swap_space_bytes();
    std::int64_t low = batch;
    while (static_cast<double>(high) > kNearEnough * static_cast<double>(low)) {
      const auto middle =
          static_cast<std::int64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  /// Whether a batch of `of` fits, as seen from the step on `batch`: that has its share of the tier's space,
  /// and of the budget what is left when all slices are described. What `auto` could compute again for want
  /// of space is left out, because how much that is depends on how long it may search a step so long.
  bool fits_in_proportion(const Program& program, std::int64_t batch, std::int64_t of,
                          double each_bytes) const {
    SessionOptions options = options_;
    const std::int64_t state = state_bytes(program.state_graph());
    const std::int64_t space = fitting_.swap_space_bytes() - state;
    if (space <= 0) return false;
    options.memory.swap_space_bytes =
        state + static_cast<std::int64_t>(static_cast<double>(space) * static_cast<double>(batch) /
                                          static_cast<double>(of));
    if (options.memory.policy.value_or(Policy::automatic) == Policy::automatic)
      options.memory.policy = Policy::window;
    const auto described = static_cast<std::int64_t>(each_bytes * static_cast<double>(of - batch));
    return fitting_of(program, options).fits(options_.memory.budget_bytes - kUnsteadyBytes - described);
  }

  const NetworkOfBatch& network_;
  std::int64_t batch_;
  const Optimizer& optimizer_;
  const SessionOptions& options_;
  std::shared_ptr<Ranks> ranks_;
  int threads_;
  ThreadScope scope_;
  std::int64_t resident_before_bytes_;
  PagedMemory paged_memory_;
  Program program_;
  Fitting fitting_;
};

}  // namespace
}  // namespace session

ForecastTable forecast(const NetworkOfBatch& network, std::int64_t batch, const Optimizer& optimizer,
                       const SessionOptions& options, const ForecastRequest& request) {
  if (batch < 1) throw UserError("a batch has at least one sample");
  if (options.accumulate < 1) throw UserError("a step has at least one micro-batch");
  const bool named = options.memory.budget_bytes > 0;
  if (!named && !request.plan_file.empty())
    throw UserError("a plan file needs a memory budget: a plan is for one");
  if (!named && request.largest_batch)
    throw UserError("the largest batch needs a memory budget that it is to fit");
  if (!named && !request.explain.empty() && request.explain != session::kSmallest)
    throw UserError("what happens to a tensor depends on the budget: name a memory budget");
  if (!request.plan_file.empty()) check_writable(request.plan_file, "the plan");
  return session::Forecaster(network, batch, optimizer, options).table(request);
}

std::int64_t largest_batch_below(const NetworkOfBatch& network, std::int64_t batch,
                                 const Optimizer& optimizer, const SessionOptions& options) {
  return options.accumulate *
         session::Forecaster(network, batch, optimizer, options).largest_between(0, batch);
}

}  // namespace penstock
