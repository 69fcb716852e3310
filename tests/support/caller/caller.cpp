#include <cstdlib>

/// A library that calls another one's function, for tests/base/bind_calls_test.cpp.
extern "C" int number_in(const char* text) {
  return atoi(text);
}
