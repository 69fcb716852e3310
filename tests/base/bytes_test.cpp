#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock {
namespace {

TEST(Bytes, ParsesBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("1GiB", "--memory"), kGiB);
  EXPECT_EQ(parse_bytes("800MiB", "--memory"), 800 * kMiB);
  EXPECT_EQ(parse_bytes("2GB", "--memory"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 GiB", "--memory"), 1536 * kMiB);
  EXPECT_EQ(parse_bytes("4096", "--memory"), 4096);
}

TEST(Bytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "12 parsecs", "-1MiB", "1e40GiB", "nan", "1GiBx"}) {
    EXPECT_THROW(parse_bytes(text, "--memory"), UserError) << text;
  }
}

TEST(Bytes, FormatsThreeDigits) {
  EXPECT_EQ(format_bytes(640), "640 B");
  EXPECT_EQ(format_bytes(kGiB + kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(812 * kMiB), "812 MiB");
}

}  // namespace
}  // namespace penstock
