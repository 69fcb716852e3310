#include "base/places.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Places, NobodyIsAnywhereAtFirst) {
  Places places;
  EXPECT_FALSE(places.shares(0, 0, 4));
  places.see(0, 0);
  EXPECT_FALSE(places.shares(0, 0, 4));
}

TEST(Places, ThreadsOnOneCoreShareIt) {
  Places places;
  for (int thread = 0; thread < 3; ++thread) places.see(thread, 7 + thread);
  EXPECT_FALSE(places.shares(0, 0, 3));
  places.see(2, 7);
  EXPECT_TRUE(places.shares(0, 0, 3));
  EXPECT_TRUE(places.shares(2, 0, 3));
  EXPECT_FALSE(places.shares(1, 0, 3));
  places.see(0, 9);
  EXPECT_FALSE(places.shares(0, 0, 3));
}

TEST(Places, OnlyThoseAskedAboutCount) {
  Places places;
  for (const int thread : {0, 1, 3}) places.see(thread, 5);
  places.see(2, 6);
  EXPECT_TRUE(places.shares(3, 0, 1));
  EXPECT_FALSE(places.shares(3, 2, 4));
  EXPECT_FALSE(places.shares(0, 0, 1));
}

TEST(Places, WhereTheSystemDoesNotTellNobodyShares) {
  Places places;
  for (const int thread : {0, 1}) places.see(thread, -1);
  EXPECT_FALSE(places.shares(0, 0, 2));
}

TEST(Places, MoreThreadsThanAreKnown) {
  Places places;
  places.see(Places::kThreads, 1);
  places.see(0, 1);
  EXPECT_FALSE(places.shares(Places::kThreads, 0, Places::kThreads + 1));
  EXPECT_FALSE(places.shares(0, 0, Places::kThreads + 1));
}

}  // namespace
}  // namespace penstock
