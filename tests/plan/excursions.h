#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// Lets each value of a plan that keeps everything go to the tier and come back once it is made, so that many
/// are there one after the other.
inline void add_excursions(const Problem& problem, Plan& plan) {
  LongVector<Instruction> instructions;
  for (const Instruction& in : plan.instructions) {
    instructions.push_back(in);
    if (in.action != Action::run) continue;
    for (const Use& use : problem.op(in.id).uses) {
      const StorageInfo& storage = problem.storage(use.storage);
      if (!use.writes || !storage.swappable || storage.carried) continue;
      for (const Action action :
           {Action::swap_out, Action::wait, Action::release, Action::swap_in, Action::wait}) {
        instructions.push_back({action, use.storage});
      }
    }
  }
  plan.instructions = std::move(instructions);
}

}  // namespace penstock::plan
