#include "report/well_formed.h"

#include <gtest/gtest.h>

namespace penstock::report {
namespace {

TEST(WellFormed, FindsWhatIsWrong) {
  EXPECT_EQ(WellFormed("<!DOCTYPE html>\n<a b=\"c &amp; d\"><e/>text</a>\n").problem(), "");
  for (const char* wrong : {"<a><b></a></b>", "<a>", "</a>", "<a b=c></a>", "<a b=\"1\" b=\"2\"/>",
                            "<a>&nbsp;</a>", "<a>x > y</a>", "<a b=\"<\"/>", "<a/>text", "<a b=\"c/>"})
    EXPECT_NE(WellFormed(wrong).problem(), "") << wrong;
}

}  // namespace
}  // namespace penstock::report
