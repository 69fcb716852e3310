#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string digest(const std::string& text, std::size_t piece, bool portable = false) {
  Sha256 sha(portable);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    sha.update(text.data() + at, std::min(piece, text.size() - at));
  }
  return sha.finish();
}

TEST(Sha256, StandardVectors) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest(std::string(1000000, 'a'), 1000000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  const std::string text(1000, 'x');
  for (const std::size_t piece : {1, 7, 63, 64, 65, 500}) EXPECT_EQ(digest(text, piece), digest(text, 1000));
}

TEST(Sha256, InstructionsAndPortableAgree) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * 131 + i / 7);
  EXPECT_EQ(digest(text, 3000), digest(text, 3000, true));
}

}  // namespace
}  // namespace penstock
