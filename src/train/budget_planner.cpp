#include "train/budget_planner.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text_file.h"
#include "data/loader.h"
#include "memory/process.h"
#include "run/residency.h"
#include "train/planned.h"
#include "train/rank_exchange.h"
#include "train/state_io.h"

namespace penstock::training {
namespace {

/// What the process takes beside code, kernels, pool and loader, none of it touched when the budget is
/// divided: thread stacks, heap growth, page tables, the kernel's side of the I/O.
constexpr std::int64_t kMarginBytes = 20 * kMiB;

/// Where the search for the largest batch ends.
constexpr std::int64_t kLargestBatch = 1 << 20;

}  // namespace

MemoryPlan BudgetPlanner::plan() {
  const Options& options = job_.options;
  const bool from_file = job_.training && !options.plan_file.empty();
  const bool named = !options.memory.empty() || from_file;
  const std::int64_t budget = !options.memory.empty() ? named_budget()
                              : from_file             ? 0
                                                      : default_memory_budget(job_.available_bytes);
  MemoryPlan plan = from_file ? plan_from_file(budget) : plan_within(budget);
  if (!named)
    job_.note(fmt::format("memory: {} (what is free, less a margin)", format_bytes(plan.budget_bytes)));
  job_.phase(
      "plan", plan.plan_seconds,
      fmt::format("policy {}, pool {} and {} beside it, of {}; {} to run again each step", plan.policy,
                  format_bytes(plan.planned_peak_bytes), format_bytes(plan.overhead_bytes()),
                  format_bytes(plan.budget_bytes), plan.training ? plan.training->summary.recomputed : 0));
  return plan;
}

std::int64_t BudgetPlanner::named_budget() const {
  return parse_memory_budget(job_.options.memory, job_.available_bytes);
}

MemoryPlan BudgetPlanner::plan_from_file(std::int64_t budget) const {
  return memory_plan_from_json(job_.program, job_.options, budget, overhead(job_.options.batch),
                               read_file(job_.options.plan_file), job_.options.plan_file);
}

MemoryPlan BudgetPlanner::plan_within(std::int64_t budget) {
  try {
    return plan_twice(budget);
  } catch (const plan::BudgetError& error) {
    refuse(error, budget);
  }
}

MemoryPlan BudgetPlanner::plan_twice(std::int64_t budget) {
  // Planning itself leaves some memory behind, so what the process really has is looked at once more
  // afterwards. Which pool is best is asked only then.
  Options rough = job_.options;
  if (rough.pool == "auto") rough.pool = "virtual";
  MemoryPlan plan = plan_memory(job_.program, rough, budget, overhead(job_.options.batch), profile_source());
  malloc_trim(0);
  Overhead after = overhead(job_.options.batch);
  if (plan.profile) after["planner"] = plan.planner_bytes;  // to plan again with, between two steps
  if (after.at("program") > plan.overhead.at("program") || after.contains("planner") ||
      job_.options.pool == "auto") {
    earlier_peak_bytes_ = plan.earlier_peak_bytes;
    try {
      plan = plan_memory(job_.program, job_.options, budget, after, profile_source());
    } catch (const plan::BudgetError&) {
      // Where there is no room to plan again, the first plan has to do.
      if (after.erase("planner") == 0) throw;
      plan = plan_memory(job_.program, job_.options, budget, after, profile_source());
    }
  }
  earlier_peak_bytes_ = std::max(earlier_peak_bytes_, plan.earlier_peak_bytes);
  return plan;
}

const plan::Profile& BudgetPlanner::found_profile() {
  ProfileStore store(job_.program, job_.options, job_.threads);
  plan::Profile profile;
  if (job_.options.profile == "fresh") {
    profile = store.get();
    profile_source_name_ = store.source();
  } else if (store.find(profile)) {
    profile_source_name_ = job_.options.profile;
  } else {
    profile = estimated_profile(job_.program, job_.options);
    profile_source_name_ = "estimate";
  }
  profile_ = std::move(profile);
  return *profile_;
}

std::int64_t BudgetPlanner::smallest_budget(const Overhead& beside) const {
  try {
    return plan_memory(job_.program, job_.options, 0, beside).budget_bytes;
  } catch (const plan::BudgetError& error) {
    return advised_mib(error) * kMiB;
  }
}

ProfileSource BudgetPlanner::profile_source() {
  if (!job_.training) return {};
  if (!profiles_) profiles_ = std::make_unique<ProfileStore>(job_.program, job_.options, job_.threads);
  return [this] {
    if (!profile_) {
      const double begin = run::clock_seconds();
      profile_ = profiles_->get(
          [this] { job_.note("measuring kernels and tier, once for this network and machine"); });
      profile_source_name_ = profiles_->source();
      profile_->link = link_profile(job_.speed, job_.ranks->size());
      job_.phase("profile", run::clock_seconds() - begin,
                 fmt::format("{}; tier reads {:.0f} MB/s, writes {:.0f} MB/s", profiles_->source(),
                             profile_->tier.read_bandwidth / 1e6, profile_->tier.write_bandwidth / 1e6));
    }
    return *profile_;
  };
}

std::int64_t BudgetPlanner::advised_mib(const plan::BudgetError& error) {
  return (error.needed_bytes() + kUnsteadyBytes) / kMiB + 1;
}

void BudgetPlanner::refuse(const plan::BudgetError& error, std::int64_t budget) {
  const std::int64_t smallest = advised_mib(error);
  const std::int64_t batch = largest_batch(budget);
  throw UserError(fmt::format(
      "{} batch {} cannot {} within {}: policy {} needs at least {}; name --memory {}MiB or more, or {}",
      job_.network.name, job_.options.batch, job_.training ? "train" : "run", format_bytes(budget),
      error.policy(), format_bytes(error.needed_bytes()), smallest,
      batch > 0 ? fmt::format("--batch {} or less", batch) : "a smaller network: not even --batch 1 fits"));
}

bool BudgetPlanner::batch_fits(std::int64_t batch, std::int64_t budget) {
  job_.program = {};
  try {
    job_.program = job_.program_of(batch);
    return fits_memory(job_.program, job_.options, budget - kUnsteadyBytes, overhead(batch));
  } catch (const UserError&) {
    return false;
  }
}

std::int64_t BudgetPlanner::largest_batch_between(std::int64_t low, std::int64_t high, std::int64_t budget) {
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (batch_fits(middle, budget) ? low : high) = middle;
  }
  return low;
}

std::int64_t BudgetPlanner::largest_batch(std::int64_t budget) {
  return largest_batch_between(0, job_.options.batch, budget);
}

std::int64_t BudgetPlanner::largest_batch_from(std::int64_t budget) {
  std::int64_t low = job_.options.batch;
  if (!batch_fits(low, budget)) return largest_batch(budget);
  while (low < kLargestBatch && batch_fits(2 * low, budget)) low *= 2;
  return largest_batch_between(low, 2 * low, budget);
}

Overhead BudgetPlanner::overhead(std::int64_t batch) const {
  return {{"program", program_bytes_ > 0 ? program_bytes_ : process_memory().resident_bytes},
          {"loader", Loader::memory_bytes(*job_.data.train, batch)},
          {"conversion",
           StateIo::conversion_bytes(job_.program.state_graph()) + StateIo::shard_bytes(job_.program)},
          {"ranks", job_.ranks->communicator().growth_bytes()},
          {"margin", kMarginBytes}};
}

void BudgetPlanner::keep_seen(const Pace& pace, const MemoryPlan& plan) const {
  if (!profiles_) return;
  std::optional<plan::Profile> before = plan.profile;
  plan::Profile found;
  if (!before && profiles_->find(found)) before = std::move(found);
  if (!before) return;
  if (const auto seen = pace.seen_profile(*before)) profiles_->put(*seen);
}

}  // namespace penstock::training
