#include <gtest/gtest.h>

#include "base/error.h"
#include "memory/packed_pool.h"
#include "memory/virtual_pool.h"

namespace penstock {
namespace {

TEST(PoolFits, TellsWhetherAcquireWouldSucceed) {
  VirtualPool pool({8192, 12288, 8192, 64}, 20 * 1024, true);
  EXPECT_TRUE(pool.fits(0));
  pool.acquire(0);
  EXPECT_FALSE(pool.fits(0));
  EXPECT_FALSE(pool.fits(1));
  EXPECT_THROW(pool.acquire(1), InternalError);
  EXPECT_TRUE(pool.fits(2));
  pool.acquire(2);
  EXPECT_TRUE(pool.fits(3));
  pool.release(0);
  EXPECT_TRUE(pool.fits(0));
}

TEST(PoolFits, SeesOverlapInAPackedPool) {
  PackedPool pool({4096, 4096, 4096}, 8192, true);
  pool.acquire(0, 0);
  EXPECT_FALSE(pool.fits(1, 0));
  EXPECT_TRUE(pool.fits(2, 4096));
  pool.release(0);
  EXPECT_TRUE(pool.fits(1, 0));
}

}  // namespace
}  // namespace penstock
