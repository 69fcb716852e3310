#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "data/files.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/loader.h"
#include "data/safetensors.h"
#include "support/files/faulty_files.h"
#include "support/files/peak_memory.h"

namespace penstock {
namespace {

using testing::FaultyFiles;
using testing::FileFault;
using testing::flat_picture;
using ::testing::HasSubstr;
using testing::PeakMemory;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;

/// Reads all rows of an image.
void try_to_decode(const std::string& path) {
  const auto rows = open_image(path, {});
  std::vector<std::uint8_t> row(static_cast<std::size_t>(rows->width() * rows->channels()));
  for (std::int64_t y = 0; y < rows->height(); ++y) rows->read_row(row.data());
}

TEST(Images, ADiskThatFailsIsNoBadImage) {
  const TempFolder folder;
  testing::write_png(folder / "a.png", flat_picture(300, 200, {1, 2, 3}), {-1, 8, true});
  testing::write_jpeg(folder / "a.jpg", flat_picture(900, 700, {1, 2, 3}));
  for (const std::string name : {"a.png", "a.jpg"}) {
    int errors = 0;
    for (std::int64_t at = 0;; ++at) {
      FaultyFiles faulty({FileFault::Kind::error, at, EIO, false});
      const FilesReplaced replaced(faulty);
      try {
        try_to_decode(folder / name);
      } catch (const SampleError& error) {
        ADD_FAILURE() << "skipped: " << error.what();
      } catch (const RunError& error) {
        EXPECT_THAT(error.what(), HasSubstr("Input/output error"));
        ++errors;
      }
      EXPECT_EQ(faulty.open_files(), 0);
      if (!faulty.struck()) break;
    }
    EXPECT_GE(errors, 3) << name;
  }
  for (const FileFault::Kind kind : {FileFault::Kind::error, FileFault::Kind::short_count}) {
    FaultyFiles faulty({kind, 2, EINTR, false});
    const FilesReplaced replaced(faulty);
    try_to_decode(folder / "a.png");
    try_to_decode(folder / "a.jpg");
  }
}

TEST(Images, WhatIsGoneIsNoBadImage) {
  const TempFolder folder;
  try {
    open_image(folder / "none.png", {});
    FAIL();
  } catch (const SampleError& error) {
    FAIL() << error.what();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(Images, APipeAmongThemIsNotWaitedFor) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "a.png").c_str(), 0600), 0);
  EXPECT_THROW(open_image(folder / "a.png", {}), SampleError);
  EXPECT_THAT(user_error([&] { InputFile file(folder / "a.png"); }), HasSubstr("not a regular file"));
}

TEST(Loader, StopsWhereManySamplesAreBadAndNamesAFew) {
  const TempFolder folder;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "a/" + std::to_string(100 + i) + ".png";
    if (i % 3 == 1) {
      write_file(folder / name, "broken");
    } else {
      testing::write_png(folder / name, flat_picture(4, 4, {1}));
    }
  }
  DataRequest request;
  request.source = "images:" + folder.path();
  request.image_size = 4;
  const DataSplits splits = open_data(request);
  SamplerOptions options;
  options.samples = splits.train->size();
  options.batch = 2;
  options.shuffle = false;
  Loader loader(*splits.train, Sampler(options));
  std::vector<float> images(2 * 48);
  std::vector<std::int32_t> labels(2);
  int batches = 0;
  const std::string error = user_error([&] {
    for (; batches < 100; ++batches) loader.next(images.data(), labels.data());
  });
  EXPECT_THAT(error, HasSubstr("11 samples"));
  EXPECT_THAT(error, HasSubstr("101.png"));
  EXPECT_GT(batches, 10);
}

TEST(Loader, NamesOnlyTheFirstOfManySkippedSamples) {
  // A data set of which one sample in twenty is bad, each with a long message.
  class Patchy final : public Dataset {
   public:
    Patchy() : Dataset("patchy", {1, 0, 1, 1, 2, false}) {}
    std::int64_t size() const override { return 5000; }
    void read(std::int64_t index, float* image, std::int32_t* labels) const override {
      if (index % 20 == 0) throw SampleError(std::to_string(index) + std::string(1000, 'x'));
      *image = 0;
      *labels = 0;
    }
    std::int64_t resident_bytes() const override { return 0; }
    std::int64_t working_bytes() const override { return 0; }
  } const patchy;
  SamplerOptions options;
  options.samples = patchy.size();
  options.batch = 100;
  Loader loader(patchy, Sampler(options), {}, 100);
  std::vector<float> images(100);
  std::vector<std::int32_t> labels(100);
  for (int i = 0; i < 100; ++i) loader.next(images.data(), labels.data());
  EXPECT_EQ(loader.skipped_count(), 250);
  EXPECT_EQ(loader.skipped().size(), Loader::kNamedSkipped);
}

TEST(Png, TextsAreNotInflated) {
  const TempFolder folder;
  const std::string path = folder / "a.png";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  png_structp encoder = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(encoder);
  png_init_io(encoder, file);
  png_set_IHDR(encoder, info, 8, 8, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::string text(7'000'000, 'a');
  std::string key = "Comment";
  png_text entry{};
  entry.compression = PNG_TEXT_COMPRESSION_zTXt;
  entry.key = key.data();
  entry.text = text.data();
  entry.text_length = text.size();
  for (int i = 0; i < 8; ++i) png_set_text(encoder, info, &entry, 1);
  png_write_info(encoder, info);
  std::vector<png_byte> row(8, 5);
  for (int y = 0; y < 8; ++y) png_write_row(encoder, row.data());
  png_write_end(encoder, nullptr);
  png_destroy_write_struct(&encoder, &info);
  std::fclose(file);
  text = std::string();

  const PeakMemory peak;
  try_to_decode(path);
  EXPECT_LT(peak.grown_bytes(), 16 << 20);
}

TEST(Idx, GzippedFilesTakeNoMoreThanTheyHoldAndMay) {
  const TempFolder folder;
  const std::string whole = testing::idx_images(3, 1024, 1024);
  // 512 images of 1 MiB are promised, 3 are there.
  std::string text = whole;
  text[6] = 2;
  text[7] = 0;
  testing::write_gzip(folder / "a.gz", text);
  {
    const PeakMemory peak;
    EXPECT_THAT(user_error([&] { open_idx_images(folder / "a.gz", std::int64_t{4} << 30); }),
                HasSubstr("cut short"));
    EXPECT_LT(peak.grown_bytes(), 32 << 20);
  }
  testing::write_gzip(folder / "b.gz", whole);
  EXPECT_THAT(user_error([&] { open_idx_images(folder / "b.gz", 1 << 20); }), HasSubstr("gunzip it"));
  EXPECT_EQ(open_idx_images(folder / "b.gz", 3 << 20).pixels.size(), 3);
}

TEST(SafetensorsHeader, AHugeHeaderIsReadWithoutATree) {
  const TempFolder folder;
  std::string header = "{";
  for (int i = 0; header.size() < (4 << 20); ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  }
  const auto count = static_cast<std::size_t>(std::count(header.begin(), header.end(), '[')) / 2;
  header += "}";
  std::string file(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(file.data(), &size, sizeof(size));
  file += header + std::string(count, 'x');
  write_file(folder / "a", file);
  file = std::string();
  header = std::string();
  const PeakMemory peak;
  EXPECT_EQ(SafetensorsFile::open(folder / "a").tensors().size(), count);
  // The text itself and what is kept of it; a tree takes more than twice as much.
  EXPECT_LT(peak.grown_bytes(), 40 << 20);

  std::string longer(8, '\0');
  const std::uint64_t too_long = 17 << 20;
  std::memcpy(longer.data(), &too_long, sizeof(too_long));
  write_file(folder / "b", longer + std::string(too_long, ' '));
  EXPECT_THAT(user_error([&] { SafetensorsFile::open(folder / "b"); }), HasSubstr("a header of"));
}

}  // namespace
}  // namespace penstock
