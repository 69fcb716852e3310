#pragma once

#include <stdexcept>
#include <string>

namespace penstock {

/// The user's fault: an option, a file, a budget. One line that says what is wrong, the numbers, and what to
/// do. The program ends with exit code 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A failure at run time that is nobody's input: disk full, I/O error. The program ends with exit code 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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
