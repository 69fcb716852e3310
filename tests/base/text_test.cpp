#include "base/text.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Text, PrintableHasNoEscapeSequences) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("\x1b[31mred\x07\n"), "?[31mred??");
  EXPECT_EQ(printable("\u00e4\u20ac\U0001F600"), "\u00e4\u20ac\U0001F600");
  // A terminal may take U+009B as the beginning of a sequence, as one byte or as two.
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  // Turned writing direction hides what a name ends with.
  EXPECT_EQ(printable("a\u202egnp.exe"), "a?gnp.exe");
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf5"), "??????");
  EXPECT_EQ(printable("cut \xe2\x82"), "cut ??");
}

TEST(Text, PrintableIsCutBetweenCharacters) {
  std::string text(119, 'a');
  text += "\u20ac and more";
  EXPECT_EQ(printable(text), std::string(119, 'a') + "...");
  EXPECT_EQ(printable(std::string(1 << 20, 'a')).size(), 123U);
}

TEST(Text, LinesStayInLongText) {
  EXPECT_EQ(without_controls("a\n\tb\x1b[2J\r"), "a\n\tb?[2J?");
}

TEST(Text, ToUtf8KeepsUtf8AndEscapesTheRest) {
  EXPECT_EQ(to_utf8("\u00e4/b"), "\u00e4/b");
  EXPECT_EQ(to_utf8("caf\xe9/x"), "caf\\xe9/x");
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(to_utf8(""), "");
}

TEST(Text, JsonStringsAreQuoted) {
  EXPECT_EQ(json_string("a\"b\\c\n\u00e4\xff"), "\"a\\\"b\\\\c\\u000a\u00e4\\\\xff\"");
}

TEST(Text, NestingIsCountedOutsideStrings) {
  EXPECT_FALSE(nests_deeper_than("[[{}]]", 3));
  EXPECT_TRUE(nests_deeper_than("[[{}]]", 2));
  EXPECT_FALSE(nests_deeper_than(R"(["[[[[\"[[[["])", 1));
  EXPECT_FALSE(nests_deeper_than("[][][][]", 1));
  EXPECT_TRUE(nests_deeper_than(std::string(1'000'000, '['), 100));
  EXPECT_FALSE(nests_deeper_than("]]]]", 1));
}

}  // namespace
}  // namespace penstock
