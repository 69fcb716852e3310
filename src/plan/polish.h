#pragma once

#include "plan/plan_contest.h"

namespace penstock::plan {

/// What a plan was made of: the step with its reruns and what is swapped in it.
struct Made {
  Step step;
  SwapSet swaps;
  WriteStart write_start = WriteStart::at_gap;
  double seconds = 0;
};

/// Swaps single gaps more or less, one for another, and starts copy-outs earlier, as long as that makes the
/// step shorter and the contest allows more plans.
void polish(PlanContest& contest, Made made);

}  // namespace penstock::plan
