#include "base/json_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace penstock {
namespace {

using Json = nlohmann::json;

TEST(WholeNumber, IsTakenWhereItHasRoom) {
  EXPECT_EQ(whole_number<int>(Json::parse("-7")), -7);
  EXPECT_EQ(whole_number<std::int32_t>(Json::parse("2147483647")), 2147483647);
  EXPECT_EQ(whole_number<std::int32_t>(Json::parse("-2147483648")), -2147483648);
  EXPECT_EQ(whole_number<std::int64_t>(Json::parse("9223372036854775807")), INT64_MAX);
  EXPECT_EQ(whole_number<std::size_t>(Json::parse("18446744073709551615")), UINT64_MAX);
}

TEST(WholeNumber, IsRefusedWhereItHasNoneOrIsNotWhole) {
  EXPECT_THROW(whole_number<std::int32_t>(Json::parse("2147483648")), UserError);
  EXPECT_THROW(whole_number<std::int32_t>(Json::parse("-2147483649")), UserError);
  EXPECT_THROW(whole_number<std::int64_t>(Json::parse("9223372036854775808")), UserError);
  EXPECT_THROW(whole_number<std::size_t>(Json::parse("-1")), UserError);
  for (const char* text : {"1e99", "2.5", "281111111119999999996", "\"1\"", "true", "null", "[1]"})
    EXPECT_THROW(whole_number<std::int64_t>(Json::parse(text)), UserError) << text;
}

TEST(WholeNumber, ListsAreOfSuchNumbers) {
  EXPECT_EQ(whole_numbers<std::int64_t>(Json::parse("[1, -2]")), (LongVector<std::int64_t>{1, -2}));
  EXPECT_THROW(whole_numbers<std::int64_t>(Json::parse("[1, 1e99]")), UserError);
  EXPECT_THROW(whole_numbers<std::int64_t>(Json::parse("1")), UserError);
}

}  // namespace
}  // namespace penstock
