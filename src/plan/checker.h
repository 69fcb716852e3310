#pragma once

#include <cstddef>
#include <string>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

struct CheckResult {
  bool ok = true;
  std::size_t instruction = 0;  ///< the first that is wrong; the number of instructions if the end is
  std::string message;          ///< which instruction, which op or tensor, what is wrong
  Summary summary;              ///< of a plan that is ok
};

/// Proves that the plan computes what the graph says within the budget, step after step, or says why not.
/// Follows the value of every storage (which tensor it holds, in memory and on the tier) through one cycle:
/// - each op finds each input's value in memory, complete, and memory for each output that nobody is moving;
/// - nothing is read from the tier that was not completely written to it, no clean value is written again;
/// - memory and scratch stay within the budget at every instruction, places on the tier within its space;
/// - what is written to the tier destroys what others had at that place, which nobody needs any more and
/// which
///   is not being moved; state has a place of its own;
/// - what is adopted is written over at once, by an op that may;
/// - each op runs, with the same kernel each time; those with side effects run once, those that talk to other
///   ranks in the order of the graph;
/// - at the end all state has its new value, at the boundary where the step began.
/// Values are those of tensors, so running an op again is right exactly if its inputs still are what they
/// were, and a state's update cannot be lost or made twice. Shares no code with the policies. Linear in the
/// plan's length.
CheckResult check(const Problem& problem, const Plan& plan);

/// Checks and fills in plan.summary; throws InternalError with the message if the plan is wrong.
void prove(const Problem& problem, Plan& plan);

}  // namespace penstock::plan
