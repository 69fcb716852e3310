#include "ir/attrs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::ir {
namespace {

TEST(Attrs, HoldsOneStruct) {
  const Attrs attrs = AxisAttrs{3};
  EXPECT_EQ(attrs.get<AxisAttrs>().axis, 3);
  EXPECT_EQ(attrs.get_if<AxisAttrs>(), &attrs.get<AxisAttrs>());
  EXPECT_EQ(attrs.get_if<ConvAttrs>(), nullptr);
  EXPECT_THROW(attrs.get<ConvAttrs>(), InternalError);
  EXPECT_EQ(attrs.type(), typeid(AxisAttrs));
}

TEST(Attrs, IsNoneUnlessSaid) {
  const Attrs attrs;
  EXPECT_EQ(attrs.type(), typeid(NoAttrs));
  EXPECT_NE(attrs.get_if<NoAttrs>(), nullptr);
  EXPECT_EQ(attrs, Attrs(NoAttrs{}));
  EXPECT_FALSE(attrs == Attrs(AxisAttrs{1}));
}

TEST(Attrs, ComparesWhatItHolds) {
  EXPECT_EQ(Attrs(AxisAttrs{1}), Attrs(AxisAttrs{1}));
  EXPECT_FALSE(Attrs(AxisAttrs{1}) == Attrs(AxisAttrs{2}));
}

TEST(Attrs, CopiesKeepTheirValueWhenTheOriginalChanges) {
  Attrs attrs = AxisAttrs{1};
  const Attrs copy = attrs;
  attrs = AxisAttrs{2};
  EXPECT_EQ(copy.get<AxisAttrs>().axis, 1);
  EXPECT_EQ(attrs.get<AxisAttrs>().axis, 2);
}

}  // namespace
}  // namespace penstock::ir
