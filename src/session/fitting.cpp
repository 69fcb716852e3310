#include "session/fitting.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/paged_memory.h"
#include "base/text_file.h"
#include "fit/fit_json.h"
#include "memory/process.h"
#include "plan/budget_error.h"
#include "plan/estimate.h"
#include "report/explain_smallest.h"
#include "session/state_io.h"
#include "tier/swap_dir.h"

namespace penstock::session {
namespace {

/// The heap may grow so much while a step is planned without being counted: the margin bears it.
constexpr std::int64_t kPlanningSlackBytes = 4 * kMiB;

/// How many tensors of state enter a step.
std::int64_t states_of(const ir::Graph& graph) {
  return std::count_if(graph.tensors.begin(), graph.tensors.end(), [](const ir::Tensor& tensor) {
    return ir::is_state(tensor.role) && tensor.producer == ir::kNone;
  });
}

/// Of the process, without what it has freed and what is paged.
std::int64_t resident_bytes() {
  malloc_trim(0);
  evict_paged();
  return process_memory().resident_bytes;
}

/// Of the disk's free space so much is left to others.
constexpr std::int64_t kLeftShare = 16;
constexpr std::int64_t kMostLeftBytes = kGiB;

std::string swap_folder(const MemoryOptions& options) {
  try {
    return options.swap_dir.empty() ? default_swap_dir() : options.swap_dir;
  } catch (const UserError&) {
    return {};
  }
}

std::int64_t free_space(const MemoryOptions& options) {
  if (options.tier == TierKind::ram) return 0;
  const std::string folder = swap_folder(options);
  // Without a folder, whoever makes the tier says so, if one is needed.
  return folder.empty() ? plan::kNoLimit : free_disk_bytes(folder);
}

std::int64_t output_bytes(const lower::Executable* step) {
  std::int64_t bytes = 0;
  if (step == nullptr) return bytes;
  for (const ir::Port& port : step->graph.outputs) {
    if (port.tensor != ir::kNone) bytes += step->graph.tensor(port.tensor).shape.elements() * 4;
  }
  return bytes;
}

}  // namespace

PagedMemory paged_memory(const MemoryOptions& options) {
  if (options.tier == TierKind::ram) return {"", 0};
  const std::int64_t budget = options.budget_bytes > 0 ? options.budget_bytes : available_memory_bytes();
  return {swap_folder(options), most_paged_bytes(budget)};
}

TierOptions tier_options(const MemoryOptions& options) {
  TierOptions tier;
  tier.kind = options.tier;
  tier.swap_dir = options.swap_dir;
  tier.verify = options.verify;
  tier.read_bytes_per_second = tier.write_bytes_per_second = options.tier_bytes_per_second;
  return tier;
}

Fitting::Fitting(const Program& program, const SessionOptions& options, int threads,
                 std::int64_t resident_before_bytes, std::int64_t available_bytes, std::int64_t rank_bytes,
                 const plan::LinkProfile& link, int ranks_here, bool paged)
    : program_(program),
      options_(options),
      threads_(threads),
      resident_before_bytes_(resident_before_bytes),
      available_bytes_(available_bytes),
      rank_bytes_(rank_bytes),
      free_disk_bytes_(free_space(options.memory) / ranks_here),
      paged_(paged),
      link_(link) {
  if (!program.training) return;
  measure::ProfileRequest profile;
  profile.source = options.memory.profile;
  profile.file = options.memory.profile_file;
  profile.tier = tier_options(options.memory);
  profile.threads = threads;
  profiles_ = std::make_unique<measure::ProfileStore>(*program.training, profile);
}

std::int64_t Fitting::budget_bytes() const {
  if (options_.memory.budget_bytes > 0) return options_.memory.budget_bytes;
  const std::int64_t free = default_memory_budget(available_bytes_);
  return options_.memory.scope == BudgetScope::process
             ? free
             : std::max<std::int64_t>(0, free - resident_before_bytes_);
}

std::int64_t Fitting::swap_space_bytes() const {
  if (options_.memory.swap_space_bytes) return *options_.memory.swap_space_bytes;
  if (options_.memory.tier == TierKind::ram)
    return std::max<std::int64_t>(0, available_bytes_ - budget_bytes());
  return free_disk_bytes_ - std::min(free_disk_bytes_ / kLeftShare, kMostLeftBytes);
}

fit::Division Fitting::division(std::int64_t budget_bytes, std::int64_t planner_bytes,
                                const StepBytes& plan_bytes) const {
  Shares shares;
  shares.budget_bytes = budget_bytes;
  shares.scope = options_.memory.scope;
  shares.resident_bytes = assumed_resident_bytes_ > 0 ? assumed_resident_bytes_ : resident_bytes();
  shares.resident_before_bytes = resident_before_bytes_;
  shares.touched_bytes = touched_bytes_;
  shares.conversion_bytes =
      StateIo::conversion_bytes(program_.state_graph()) + StateIo::shard_bytes(program_);
  shares.output_bytes =
      std::max(output_bytes(program_.training.get()), output_bytes(program_.evaluation.get()));
  shares.rank_bytes = rank_bytes_;
  shares.planner_bytes = planner_bytes;
  shares.plan_bytes = paged_ ? plan_bytes.heap : plan_bytes.all();
  if (paged_)
    shares.description_bytes =
        std::min(most_paged_bytes(budget_bytes),
                 plan_bytes.paged + (assumed_resident_bytes_ > 0 ? assumed_paged_bytes_ : paged_bytes()));
  shares.reserved_bytes = options_.reserved_bytes;
  return divide(shares);
}

StepBytes Fitting::plan_bytes() const {
  StepBytes bytes;
  for (const lower::Executable* step : program_.steps().all()) {
    const StepBytes guess = plan_guess(static_cast<std::int64_t>(step->graph.ops.size()),
                                       step->graph.storages, states_of(step->graph), options_.record);
    bytes.heap += guess.heap;
    bytes.paged += guess.paged;
  }
  return bytes;
}

std::int64_t Fitting::planning_budget_bytes(Effort effort) const {
  StepBytes most;
  for (const lower::Executable* step : program_.steps().all()) {
    const auto ops = static_cast<std::int64_t>(step->graph.ops.size());
    const StepBytes guess = effort == Effort::search ? search_guess(ops, step->graph.storages)
                                                     : walk_guess(ops, step->graph.storages);
    if (guess.all() > most.all()) most = guess;
  }
  const fit::Division beside = division(0, 0, most);
  return beside.beside_for("program") + beside.beside_for("plan") + beside.beside_for("description");
}

fit::Request Fitting::request(std::int64_t budget_bytes, std::int64_t planner_bytes,
                              const StepBytes& plan_bytes) const {
  fit::Request request;
  request.division = division(budget_bytes, planner_bytes, plan_bytes);
  request.policy = options_.memory.policy;
  request.pool = options_.memory.pool;
  request.tier_bytes = fit::limit_that_counts(program_.steps(), swap_space_bytes());
  request.lms = options_.memory.lms;
  request.window.window_bytes = options_.memory.window_bytes;
  return request;
}

fit::Fit Fitting::from_file() const {
  const std::string& file = options_.memory.plan_file;
  fit::Fit fit = fit::fit_from_json(program_.steps(), division(options_.memory.budget_bytes, 0, plan_bytes()),
                                    read_file(file), file);
  if (fit.map.tier_bytes > swap_space_bytes()) {
    throw UserError(fmt::format("{}: the plan needs {} of swap space, there {}; give more, or plan again",
                                file, format_bytes(fit.map.tier_bytes), format_bytes(swap_space_bytes())));
  }
  return fit;
}

fit::Fit Fitting::fit() {
  const double begin = clock_seconds();
  if (program_.training && !options_.memory.plan_file.empty()) {
    fit::Fit fit = from_file();
    plan_seconds_ = clock_seconds() - begin;
    return fit;
  }
  const std::int64_t budget = budget_bytes();
  if (const std::int64_t least = planning_budget_bytes(Effort::walk);
      budget < least && budget < in_memory_bytes())
    throw plan::BudgetError(plan::policy_name(options_.memory.policy.value_or(Policy::automatic)),
                            std::max(least, smallest_budget() - kUnsteadyBytes - 1), budget);
  {
    fit::Fit first = fit::first_fit(program_.steps(), request(budget, 0, plan_bytes()));
    plan_seconds_ = clock_seconds() - begin;
    if (!fit::wants_profile(program_.steps(), first)) return first;
  }
  const plan::Profile& profile = measured_profile();
  const double again = clock_seconds();
  fit::Fit fit = best(budget, &profile);
  plan_seconds_ += clock_seconds() - again;
  return fit;
}

fit::Fit Fitting::best(std::int64_t budget_bytes, const plan::Profile* profile) const {
  const ir::Graph& graph = program_.state_graph();
  const std::int64_t planner =
      planner_guess_bytes(static_cast<std::int64_t>(graph.ops.size()), graph.storages);
  // A long step within little memory leaves no room to search. Where space on the tier is scarce it is
  // searched all the same, because no other policy may find a plan there.
  const bool room_to_search =
      budget_bytes >= planning_budget_bytes(Effort::search) || may_compute_again_for_space();
  const auto fit_with = [&](std::int64_t planner_bytes, const StepBytes& plan_bytes) {
    fit::Request asked = request(budget_bytes, planner_bytes, plan_bytes);
    if (!room_to_search && asked.policy.value_or(Policy::automatic) == Policy::automatic)
      asked.policy = Policy::window;
    return fit::best_fit(program_.steps(), asked, profile);
  };
  const auto plan = [&](const StepBytes& plan_bytes) {
    try {
      return fit_with(planner, plan_bytes);
    } catch (const plan::BudgetError&) {
      // Where there is no room to plan again, the first plan has to do.
      return fit_with(0, plan_bytes);
    }
  };
  fit::Fit fit = plan(plan_bytes());
  if (assumed_resident_bytes_ > 0) return fit;
  // How large the plan is was a guess, so what the process has is looked at once more, with the plan in it
  // but without what no step needs.
  fit::shed_problems(fit);
  const StepBytes running =
      fit.training
          ? running_guess(static_cast<std::int64_t>(graph.ops.size()), graph.storages, states_of(graph),
                          static_cast<std::int64_t>(fit.training->plan.instructions.size()), options_.record)
          : StepBytes();
  const std::int64_t grown = division(budget_bytes, 0, running).beside_bytes() - fit.division.beside_bytes() +
                             fit.division.beside_for("planner");
  if (grown <= kPlanningSlackBytes || fit.pool_bytes() + grown <= fit.division.pool_bytes()) {
    fit::restore_problems(program_.steps(), fit);
    return fit;
  }
  fit = {};
  malloc_trim(0);
  return plan(running);
}

const plan::Profile& Fitting::measured_profile() {
  if (profile_) return *profile_;
  const double begin = clock_seconds();
  const std::int64_t before = resident_bytes();
  profile_ = profiles_->get([this] {
    if (options_.on_note) options_.on_note("measuring kernels and tier, once for this network and machine");
  });
  profile_source_ = profiles_->source();
  profile_->link = link_;
  touched_bytes_ = std::max<std::int64_t>(0, resident_bytes() - before);
  if (options_.on_phase) {
    options_.on_phase(
        {"profile", clock_seconds() - begin,
         fmt::format("{}; tier reads {:.0f} MB/s, writes {:.0f} MB/s", profile_source_,
                     profile_->tier.read_bandwidth / 1e6, profile_->tier.write_bandwidth / 1e6)});
  }
  return *profile_;
}

const plan::Profile& Fitting::found_profile() {
  if (profile_) return *profile_;
  if (options_.memory.profile == ProfileSource::fresh) return measured_profile();
  if (std::optional<plan::Profile> found = profiles_->find()) {
    profile_source_ =
        options_.memory.profile == ProfileSource::file ? options_.memory.profile_file : "cached";
    profile_ = std::move(*found);
  } else {
    plan::MachineEstimate machine;
    if (const auto bandwidth = static_cast<double>(options_.memory.tier_bytes_per_second); bandwidth > 0) {
      machine.tier.read_bandwidth = machine.tier.write_bandwidth = bandwidth;
      machine.tier.read_bandwidth_together = machine.tier.write_bandwidth_together = bandwidth;
      machine.tier.serves_waiting_first = false;
    }
    const plan::Problem problem = plan::make_problem(
        program_.training->graph, program_.training->scratch_bytes, plan::grain_rule(0, 4096));
    profile_ = plan::estimate_profile(problem, machine);
    if (!program_.training->variants.empty()) {
      plan::OpSeconds by_variant;
      for (std::size_t op = 0; op < profile_->op_seconds.size(); ++op)
        by_variant.push_back(
            std::vector<double>(program_.training->variants[op].size(), profile_->op_seconds.at(op, 0)));
      profile_->op_seconds = by_variant;
    }
    profile_source_ = "estimate";
  }
  profile_->link = link_;
  return *profile_;
}

void Fitting::prepare() {
  found_profile();
  assumed_resident_bytes_ = resident_bytes();
  assumed_paged_bytes_ = paged_bytes();
}

fit::Fit Fitting::fit_within(std::int64_t budget_bytes) const {
  require(profile_ && assumed_resident_bytes_ > 0, "a fit within a budget needs prepare()");
  return best(budget_bytes, &*profile_);
}

bool Fitting::fits(std::int64_t budget_bytes) const {
  try {
    fit::first_fit(program_.steps(), request(budget_bytes, 0, plan_bytes()));
    return true;
  } catch (const plan::BudgetError&) {
    return false;
  }
}

std::int64_t Fitting::smallest_budget() const {
  const auto least = [&](const fit::Request& asked) {
    try {
      fit::first_fit(program_.steps(), asked);
      return std::int64_t{0};
    } catch (const plan::BudgetError& error) {
      return round_up(error.needed_bytes() + kUnsteadyBytes + 1, kMiB);
    }
  };
  fit::Request with_space = request(0, 0, plan_bytes());
  std::int64_t enough = std::max(least(with_space), round_up(planning_budget_bytes(Effort::walk), kMiB));
  if (!may_compute_again_for_space()) return enough;
  // Computing again may do with less: that has to be tried.
  with_space.tier_bytes = plan::kNoLimit;
  std::int64_t too_little = least(with_space) - 1;
  while (enough - too_little > std::max(enough / 32, kMiB)) {
    // What all in memory takes may be a hundred times as much, so the middle is that of the logarithms.
    const double ratio = static_cast<double>(enough) / static_cast<double>(std::max(too_little, kMiB));
    const auto apart =
        static_cast<std::int64_t>(static_cast<double>(std::max(too_little, kMiB)) * std::sqrt(ratio));
    const std::int64_t middle = std::clamp(round_up(apart, kMiB), too_little + 1, enough - 1);
    (fits(middle - kUnsteadyBytes) ? enough : too_little) = middle;
  }
  return enough;
}

bool Fitting::may_compute_again_for_space() const {
  return options_.memory.policy.value_or(Policy::automatic) == Policy::automatic &&
         request(0, 0, {}).tier_bytes != plan::kNoLimit;
}

std::vector<std::string> Fitting::explain_smallest(std::int64_t smallest_bytes) const {
  const lower::Executable& step = *program_.training;
  const auto beside =
      division(0, 0, plan_bytes()).beside;  // Before the problem is there, which is no part of it.
  const plan::Problem problem = plan::make_problem(step.graph, step.scratch_bytes, plan::grain_rule(0, 4096));
  return report::explain_smallest(problem, smallest_bytes, beside);
}

std::int64_t Fitting::in_memory_bytes() const {
  return fit::in_memory_bytes(program_.steps(), request(0, 0, plan_bytes()));
}

double Fitting::in_memory_seconds() {
  // Nothing waits and nothing runs twice: a step takes what its ops take, each in its fastest kernel.
  double seconds = 0;
  const plan::OpSeconds& op_seconds = found_profile().op_seconds;
  for (std::size_t op = 0; op < op_seconds.size(); ++op) {
    const std::span<const double> variants = op_seconds[op];
    seconds += *std::min_element(variants.begin(), variants.end());
  }
  return seconds;
}

}  // namespace penstock::session
