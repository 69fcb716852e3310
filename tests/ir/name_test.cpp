#include "ir/name.h"

#include <gtest/gtest.h>

namespace penstock::ir {
namespace {

TEST(Name, ReadsAsItsText) {
  const Name plain("conv1.weight"), slice("conv1.", 12);
  EXPECT_EQ(plain.text(), "conv1.weight");
  EXPECT_EQ(slice.text(), "conv1.12");
  EXPECT_EQ(slice.with("@aBcd8b").text(), "conv1.12@aBcd8b");
  EXPECT_EQ(slice.with("@aBcd8b").with(".reorder").text(), "conv1.12@aBcd8b.reorder");
  EXPECT_EQ(plain.with(".again").text(), "conv1.weight.again");
  EXPECT_EQ(Name().text(), "");
  EXPECT_EQ(slice + ".sum", "conv1.12.sum");
  EXPECT_EQ(fmt::format("{:>9}", slice), " conv1.12");
  const std::string converted = slice;
  EXPECT_EQ(converted, "conv1.12");
}

TEST(Name, IsEqualWhereTheTextsAre) {
  EXPECT_EQ(Name("conv1.", 12), Name("conv1.12"));
  EXPECT_EQ(Name("conv", 1, ".12"), Name("conv1.", 12));
  EXPECT_NE(Name("conv1.", 12), Name("conv1.", 2));
  EXPECT_TRUE(Name("conv1.", 12) == "conv1.12");
  EXPECT_TRUE(Name("conv1.", 12) == std::string("conv1.12"));
}

}  // namespace
}  // namespace penstock::ir
