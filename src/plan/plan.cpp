#include "plan/plan.h"

#include "base/bytes.h"

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

std::int64_t place_bytes(std::int64_t size_bytes) {
  return round_up(size_bytes, kTierGrain);
}

Boundary settled(Boundary boundary) {
  for (Standing& standing : boundary) standing.pending = Transfer::none;
  return boundary;
}

}  // namespace penstock::plan
