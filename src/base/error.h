#pragma once

#include <stdexcept>
#include <string>

#include "penstock/errors.h"

namespace penstock {

/// A programmer's error: an assertion that no input can reach.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws InternalError with `what` unless `condition` holds. On in every build.
inline void require(bool condition, const char* what) {
  if (!condition) throw InternalError(what);
}

}  // namespace penstock
