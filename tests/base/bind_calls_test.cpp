#include "base/bind_calls.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace penstock {
namespace {

int forty_two(const char* /*text*/) {
  return 42;
}

TEST(BindCalls, ChangesTheCallsOfOneLibraryAlone) {
  void* library = ::dlopen(PENSTOCK_TEST_CALLER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  auto* number_in = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "number_in"));
  ASSERT_NE(number_in, nullptr);
  EXPECT_EQ(number_in("7"), 7);
  const std::array calls{BoundCall{"atoi", reinterpret_cast<void*>(forty_two)},
                         BoundCall{"nobody_calls_this", reinterpret_cast<void*>(forty_two)}};
  bind_calls(reinterpret_cast<const void*>(number_in), calls);
  EXPECT_EQ(number_in("7"), 42);
  const char* volatile text = "7";
  EXPECT_EQ(std::atoi(text), 7);
  bind_calls(reinterpret_cast<const void*>(number_in), calls);
  EXPECT_EQ(number_in("7"), 42);
  ::dlclose(library);
}

}  // namespace
}  // namespace penstock
