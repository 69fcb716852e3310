#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/slices.h"
#include "dist/communicator.h"
#include "dist/sum.h"

namespace penstock::dist {
namespace {

TEST(RankSlice, PartsCoverTheWholeOnceInWholeLines) {
  for (const std::int64_t count : {0, 1, 16, 17, 100, 4096, 100'003}) {
    for (const int ranks : {1, 2, 3, 7, 64}) {
      std::int64_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = rank_slice(count, rank, ranks);
        EXPECT_EQ(slice.begin, at) << count << " " << rank << " of " << ranks;
        EXPECT_TRUE(slice.begin % 16 == 0 || slice.size() == 0);
        EXPECT_LE(slice.size(), (count / ranks) + 32);
        at = slice.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST(AddInOrder, AddsFromTheFirstOnAndMayOverwriteAPiece) {
  // The order shows: a large number swallows small ones that come after it one by one.
  std::vector<float> small(3000, 1.0F), large(3000, 16777216.0F), more(3000, 1.0F);
  std::vector<float> out(3000);
  add_in_order(std::vector<const float*>{small.data(), more.data(), large.data()}, 0.5F, out.data(), 3000);
  EXPECT_EQ(out[2999], (2.0F + 16777216.0F) * 0.5F);
  add_in_order(std::vector<const float*>{large.data(), small.data(), more.data()}, 0.5F, small.data(), 3000);
  EXPECT_EQ(small[0], 16777216.0F * 0.5F);
  EXPECT_EQ(small[2999], 16777216.0F * 0.5F);
}

TEST(Launch, IsReadFromTheEnvironment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"})
    unsetenv(name);
  EXPECT_FALSE(launch_from_environment().launched);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  const Launch launch = launch_from_environment();
  EXPECT_TRUE(launch.launched);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 3);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  EXPECT_FALSE(launch_from_environment().launched);
  setenv("OMPI_COMM_WORLD_RANK", "x", 1);
  EXPECT_FALSE(launch_from_environment().launched);
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

}  // namespace
}  // namespace penstock::dist
