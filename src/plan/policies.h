#pragma once

#include <cstdint>

#include "penstock/options.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/step.h"

namespace penstock::plan {

// Each policy is a pure function. It throws BudgetError where it cannot plan within the problem's budget. Its
// plan still is to be proved (checker.h): make_plan() does both.

/// All state stays in memory; all else from its first use to its last.
Plan plan_keep(const Problem& problem);
/// The same over a step with reruns.
Plan plan_keep(const Step& step);
/// What `keep` needs.
std::int64_t keep_bytes(const Problem& problem);

using LmsOptions = LmsKnobs;

/// LMS: activations with a distant next use are copied out after the use before it and copied in again ahead
/// of it; state stays in memory.
Plan plan_lms(const Problem& problem, const LmsOptions& options = {});
/// The knobs that plan_lms() uses: the tuner searches the largest threshold, then ahead, then groupby that
/// fit.
LmsOptions tune_lms(const Problem& problem, const LmsOptions& given = {});

struct WindowOptions {
  std::int64_t window_bytes = 0;  ///< how far ahead to look; 0: 1.5 times the budget
};

/// The adaptive window: state takes part, transfers cross from one step to the next, order and sizes are all
/// it knows.
Plan plan_window(const Problem& problem, const WindowOptions& options = {});

/// SuperNeurons: values of cheap forward ops (pooling, activation, normalisation, dropout) are dropped and
/// made anew in backward from the nearest stored ones, once for the whole segment of cheap ops where that
/// fits under what the neediest op needs, otherwise for each consumer; of the others, what was used least
/// recently leaves where room is needed, its copy-out starting right after its last use in forward, and comes
/// back one expensive op ahead; state stays in memory. Where all fits, it all stays.
Plan plan_superneurons(const Problem& problem);

/// PoocH: each value that lies between forward and backward is kept, swapped or computed again, by simulating
/// the step: first all are swapped; those whose copy-ins compute waits for are kept where that pays, then
/// those whose copy-outs it waits for, from the output side; then swapped ones are computed again, those
/// first that remove most waiting for a second of computing. State stays in memory.
Plan plan_pooch(const Problem& problem, const Profile& profile);

/// The smallest budget (Problem::budget_bytes) under which any plan without recomputation exists, and under
/// which `window` plans: what the neediest op needs, beside what cannot be swapped.
std::int64_t smallest_bytes(const Problem& problem);

}  // namespace penstock::plan
