#include "ir/id_list.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace penstock::ir {
namespace {

IdList first_ids(int count) {
  IdList ids;
  for (int i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

TEST(IdList, HoldsFewAndManyAlike) {
  for (const int count : {0, 1, 3, 4, 5, 8, 9, 100}) {
    const IdList ids = first_ids(count);
    std::vector<std::int32_t> want(static_cast<std::size_t>(count));
    std::iota(want.begin(), want.end(), 0);
    EXPECT_EQ(std::vector<std::int32_t>(ids.begin(), ids.end()), want);
    EXPECT_EQ(ids, IdList(want));
    EXPECT_EQ(ids.empty(), count == 0);
    IdList copy = ids, other = first_ids(7);
    other = copy;
    EXPECT_EQ(other, ids);
    const IdList moved = std::move(copy);
    EXPECT_EQ(moved, ids);
    other = first_ids(2);
    EXPECT_EQ(other, IdList({0, 1}));
    EXPECT_THROW(ids.at(static_cast<std::size_t>(count)), InternalError);
  }
}

TEST(IdList, IsChangedInPlace) {
  IdList ids{10, 11, 12, 13};
  ids.insert(ids.begin() + 1, 20);
  EXPECT_EQ(ids, IdList({10, 20, 11, 12, 13}));
  ids.erase(ids.begin());
  EXPECT_EQ(ids, IdList({20, 11, 12, 13}));
  ids.back() = 5;
  ids.shorten(3);
  ids.push_back(6);
  EXPECT_EQ(ids, IdList({20, 11, 12, 6}));
}

}  // namespace
}  // namespace penstock::ir
