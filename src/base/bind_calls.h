#pragma once

#include <span>

namespace penstock {

struct BoundCall {
  const char* name = nullptr;
  void* function = nullptr;
};

/// Makes the library or program that `inside` lies in call these functions by these names, whatever other
/// libraries define them; its other calls and everybody else's stay as they are. Does nothing where it is so
/// already, and where the processor's relocations are not known.
void bind_calls(const void* inside, std::span<const BoundCall> calls);

}  // namespace penstock
