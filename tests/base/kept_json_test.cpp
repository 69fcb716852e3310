#include "base/kept_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace penstock::testing {
namespace {

TEST(KeptJson, IsEmptyWhenItIsTakenApart) {
  const char* text = R"({"a": [1, [2, {"b": "three"}], []], "c": {"d": null}, "e": 4})";
  nlohmann::json sorted = nlohmann::json::parse(text);
  take_apart(sorted);
  EXPECT_EQ(sorted, nlohmann::json::object());
  nlohmann::ordered_json ordered = nlohmann::ordered_json::parse(text);
  take_apart(ordered);
  EXPECT_EQ(ordered, nlohmann::ordered_json::object());
  nlohmann::json number = 5;
  take_apart(number);
  EXPECT_EQ(number, 5);
}

}  // namespace
}  // namespace penstock::testing
