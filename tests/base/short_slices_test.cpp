#include "base/short_slices.h"

#include <gtest/gtest.h>

#include "base/openmp.h"

namespace penstock {
namespace {

TEST(ShortSlices, AreShorterWhileAskedForAndAsBeforeAfterwards) {
  const std::uint64_t before = slice_nanoseconds();
  if (before == 0) GTEST_SKIP() << "the kernel tells nothing of slices";
  {
    const ShortSlices shorter;
    EXPECT_GT(slice_nanoseconds(), 0U);
    EXPECT_LT(slice_nanoseconds(), before);
    const ShortSlices again;
    EXPECT_LT(slice_nanoseconds(), before);
  }
  EXPECT_EQ(slice_nanoseconds(), before);
}

TEST(ShortSlices, OfAThreadScopeEndWithIt) {
  const std::uint64_t before = slice_nanoseconds();
  if (before == 0) GTEST_SKIP() << "the kernel tells nothing of slices";
  {
    const ThreadScope scope(2);
    EXPECT_LT(slice_nanoseconds(), before);
#pragma omp parallel num_threads(2)
    EXPECT_LT(slice_nanoseconds(), before);
  }
  EXPECT_EQ(slice_nanoseconds(), before);
}

}  // namespace
}  // namespace penstock
