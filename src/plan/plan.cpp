#include "plan/plan.h"

namespace penstock::plan {

const char* action_name(Action action) {
  switch (action) {
    case Action::acquire:
      return "acquire";
    case Action::run:
      return "run";
    case Action::swap_out:
      return "swap_out";
    case Action::swap_in:
      return "swap_in";
    case Action::wait:
      return "wait";
    case Action::release:
      return "release";
    case Action::adopt:
      return "adopt";
  }
  return "?";
}

Boundary settled(Boundary boundary) {
  for (Standing& standing : boundary) standing.pending = Transfer::none;
  return boundary;
}

}  // namespace penstock::plan
