#include "data/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include "data/dataset.h"
#include "data/files.h"

namespace penstock {
namespace {

using testing::flat_picture;
using ::testing::HasSubstr;
using testing::JpegKind;
using testing::Picture;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;
using testing::write_jpeg;
using testing::write_png;

Picture decode(const std::string& path, const DecodeOptions& options = {}) {
  const auto rows = open_image(path, options);
  Picture picture{static_cast<int>(rows->width()),
                  static_cast<int>(rows->height()),
                  static_cast<int>(rows->channels()),
                  {}};
  const std::int64_t row_bytes = rows->width() * rows->channels();
  picture.bytes.resize(static_cast<std::size_t>(row_bytes * rows->height()));
  for (std::int64_t y = 0; y < rows->height(); ++y) rows->read_row(picture.bytes.data() + y * row_bytes);
  return picture;
}

std::string decode_error(const std::string& path, const DecodeOptions& options = {}) {
  return user_error([&] {
    try {
      decode(path, options);
    } catch (const SampleError&) {
      throw;
    } catch (const UserError& error) {
      FAIL() << "not a SampleError: " << error.what();
    }
  });
}

Picture ramp(int width, int height, int channels) {
  Picture picture{width, height, channels, {}};
  for (int i = 0; i < width * height * channels; ++i)
    picture.bytes.push_back(static_cast<std::uint8_t>(i * 7));
  return picture;
}

TEST(Png, ReadsGreyAndColourExactly) {
  const TempFolder folder;
  for (const int channels : {1, 3}) {
    for (const bool interlaced : {false, true}) {
      const Picture picture = ramp(13, 9, channels);
      write_png(folder / "a.png", picture, {-1, 8, interlaced});
      const Picture got = decode(folder / "a.png");
      EXPECT_EQ(got.channels, channels);
      EXPECT_EQ(got.width, 13);
      EXPECT_EQ(got.bytes, picture.bytes) << channels << interlaced;
    }
  }
}

TEST(Png, DropsAlphaResolvesPalettesScalesDepths) {
  const TempFolder folder;
  write_png(folder / "alpha.png", flat_picture(2, 2, {5, 6, 7, 100}));
  EXPECT_EQ(decode(folder / "alpha.png").bytes, flat_picture(2, 2, {5, 6, 7}).bytes);
  write_png(folder / "grey-alpha.png", flat_picture(2, 2, {9, 100}));
  EXPECT_EQ(decode(folder / "grey-alpha.png").bytes, flat_picture(2, 2, {9}).bytes);
  write_png(folder / "palette.png", flat_picture(2, 2, {2}), {PNG_COLOR_TYPE_PALETTE});
  EXPECT_EQ(decode(folder / "palette.png").bytes, flat_picture(2, 2, {200, 100, 50}).bytes);
  // 0x8100 is nearer to 0x80 * 0x101 than to 0x81 * 0x101.
  write_png(folder / "deep.png", Picture{1, 1, 1, {0x81, 0x00}}, {-1, 16});
  EXPECT_EQ(decode(folder / "deep.png").bytes, std::vector<std::uint8_t>{0x80});
  // One bit a pixel, eight pixels in a byte.
  write_png(folder / "bits.png", Picture{8, 1, 1, {0xa0, 0, 0, 0, 0, 0, 0, 0}}, {-1, 1});
  EXPECT_EQ(decode(folder / "bits.png").bytes, (std::vector<std::uint8_t>{255, 0, 255, 0, 0, 0, 0, 0}));
}

TEST(Jpeg, ReadsGreyColourProgressiveAndInks) {
  const TempFolder folder;
  const auto near = [&](const std::string& path, const std::vector<std::uint8_t>& colour) {
    const Picture got = decode(path);
    ASSERT_EQ(got.channels, static_cast<int>(colour.size())) << path;
    for (std::size_t i = 0; i < got.bytes.size(); ++i)
      EXPECT_NEAR(got.bytes[i], colour[i % colour.size()], 3) << path;
  };
  write_jpeg(folder / "grey.jpg", flat_picture(17, 11, {90}));
  near(folder / "grey.jpg", {90});
  write_jpeg(folder / "colour.jpg", flat_picture(17, 11, {200, 90, 30}));
  near(folder / "colour.jpg", {200, 90, 30});
  write_jpeg(folder / "progressive.jpg", flat_picture(17, 11, {200, 90, 30}), JpegKind::progressive);
  near(folder / "progressive.jpg", {200, 90, 30});
  // libjpeg marks CMYK as Adobe's, whose inks are inverted: 255 is none.
  write_jpeg(folder / "inks.jpg", flat_picture(17, 11, {255, 128, 0, 128}), JpegKind::cmyk);
  near(folder / "inks.jpg", {128, 64, 0});
}

TEST(Jpeg, IsDecodedSmallerWhereThatIsEnough) {
  const TempFolder folder;
  write_jpeg(folder / "a.jpg", flat_picture(100, 64, {200, 90, 30}));
  EXPECT_EQ(decode(folder / "a.jpg", {kMiB, 65}).height, 64);
  EXPECT_EQ(decode(folder / "a.jpg", {kMiB, 32}).height, 32);
  EXPECT_EQ(decode(folder / "a.jpg", {kMiB, 17}).height, 32);
  EXPECT_EQ(decode(folder / "a.jpg", {kMiB, 1}).height, 8);
}

TEST(Images, AreToldByTheirContent) {
  const TempFolder folder;
  write_png(folder / "a.jpg", flat_picture(2, 2, {5, 6, 7}));
  EXPECT_EQ(decode(folder / "a.jpg").bytes[1], 6);
}

TEST(Images, ThatDoNotDecodeAreNamed) {
  const TempFolder folder;
  write_file(folder / "text.jpg", "this is not a picture");
  EXPECT_THAT(decode_error(folder / "text.jpg"),
              HasSubstr("text.jpg cannot be used: it is neither JPEG nor PNG"));
  write_file(folder / "empty.png", "");
  EXPECT_THAT(decode_error(folder / "empty.png"), HasSubstr("it is empty"));
}

TEST(Images, CutShortAtAnyByteDoNotDecode) {
  const TempFolder folder;
  const Picture picture = ramp(24, 24, 3);
  for (const bool progressive : {false, true}) {
    write_jpeg(folder / "a.jpg", picture, progressive ? JpegKind::progressive : JpegKind::baseline);
    write_png(folder / "a.png", picture, {-1, 8, progressive});
    const std::string jpeg = testing::read_file(folder / "a.jpg");
    const std::string png = testing::read_file(folder / "a.png");
    // The last marker and, in PNG, the last chunk and checksum are not needed.
    for (std::size_t bytes = 0; bytes + 40 < jpeg.size(); bytes += 13) {
      write_file(folder / "b.jpg", jpeg.substr(0, bytes));
      EXPECT_NE(decode_error(folder / "b.jpg"), "") << bytes;
    }
    for (std::size_t bytes = 0; bytes + 40 < png.size(); bytes += 13) {
      write_file(folder / "b.png", png.substr(0, bytes));
      EXPECT_NE(decode_error(folder / "b.png"), "") << bytes;
    }
  }
}

TEST(Images, DamagedAtAnyByteDecodeOrAreNamed) {
  const TempFolder folder;
  const Picture picture = ramp(24, 24, 3);
  write_jpeg(folder / "a.jpg", picture);
  write_png(folder / "a.png", picture);
  for (const char* name : {"a.jpg", "a.png"}) {
    const std::string whole = testing::read_file(folder / name);
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); at += 7) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
      write_file(folder / "b", damaged);
      refused += decode_error(folder / "b", {kMiB, 0}).empty() ? 0 : 1;
    }
    EXPECT_GT(refused, 3) << name;
  }
}

TEST(Images, ThatUnfoldTooFarAreRefused) {
  const TempFolder folder;
  write_png(folder / "a.png", flat_picture(600, 600, {1, 2, 3}), {-1, 8, true});
  EXPECT_THAT(decode_error(folder / "a.png", {kMiB, 0}), HasSubstr("more than the limit of 1.00 MiB"));
  write_png(folder / "b.png", flat_picture(600, 600, {1, 2, 3}));
  EXPECT_EQ(decode_error(folder / "b.png", {kMiB, 0}), "");
  write_jpeg(folder / "a.jpg", flat_picture(600, 600, {1, 2, 3}), JpegKind::progressive);
  EXPECT_THAT(decode_error(folder / "a.jpg", {kMiB, 0}), HasSubstr("more than the limit of 1.00 MiB"));
  // A header that claims 60000 x 60000 pixels.
  std::string jpeg = testing::read_file(folder / "a.jpg");
  const std::size_t frame = jpeg.find("\xff\xc2");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, std::string("\xea\x60\xea\x60", 4));
  write_file(folder / "c.jpg", jpeg);
  EXPECT_THAT(decode_error(folder / "c.jpg"), HasSubstr("60000x60000 is more than 256 million pixels"));
}

}  // namespace
}  // namespace penstock
