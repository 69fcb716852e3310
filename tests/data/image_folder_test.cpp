#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/files.h"
#include "data/loader.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using testing::flat_picture;
using ::testing::HasSubstr;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;
using testing::write_jpeg;
using testing::write_png;

class ImageFolder : public ::testing::Test {
 protected:
  ImageFolder() {
    request_.source = "images:" + folder_.path();
    request_.image_size = 4;
  }
  std::string error() {
    return user_error([&] { open_data(request_); });
  }
  /// Grey pictures whose brightness is their number.
  void add_images(const std::string& class_folder, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      const std::string name = class_folder + "/" + std::to_string(100 + i) + ".png";
      write_png(folder_ / name, flat_picture(5, 5, {static_cast<std::uint8_t>(i)}));
    }
  }
  static int brightness(const Dataset& data, std::int64_t index, std::int32_t* label) {
    std::vector<float> image(static_cast<std::size_t>(data.geometry().image_values()));
    data.read(index, image.data(), label);
    return static_cast<int>(std::lround((image[0] * 0.229F + 0.485F) * 255));
  }

  TempFolder folder_;
  DataRequest request_;
};

TEST_F(ImageFolder, SetsEveryTenthImageAside) {
  add_images("b", 12, 13);
  add_images("a", 0, 12);
  write_file(folder_ / "a/notes.txt", "not an image");
  write_file(folder_ / "readme.md", "not a class");
  std::filesystem::create_directory(folder_ / ".git");
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{3, 0, 4, 4, 2, false}));
  ASSERT_EQ(splits.train->size(), 23);
  ASSERT_EQ(splits.test->size(), 2);
  std::vector<int> seen;
  for (std::int64_t i = 0; i < 23; ++i) {
    std::int32_t label = -1;
    seen.push_back(brightness(*splits.train, i, &label));
    EXPECT_EQ(label, seen.back() < 12 ? 0 : 1);
  }
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  std::int32_t label = -1;
  EXPECT_EQ(brightness(*splits.test, 0, &label), 9);
  EXPECT_EQ(label, 0);
  EXPECT_EQ(brightness(*splits.test, 1, &label), 19);
  EXPECT_EQ(label, 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 9) + std::count(seen.begin(), seen.end(), 19), 0);
  EXPECT_GT(splits.train->resident_bytes(), 25 * 7);
  EXPECT_EQ(splits.test->resident_bytes(), 0);
}

TEST_F(ImageFolder, TakesItsOwnSplitsWhereThereAre) {
  add_images("train/cat", 0, 2);
  add_images("train/dog", 2, 1);
  add_images("val/dog", 7, 1);
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->size(), 3);
  ASSERT_EQ(splits.test->size(), 1);
  std::int32_t label = -1;
  EXPECT_EQ(brightness(*splits.test, 0, &label), 7);
  EXPECT_EQ(label, 1);
  EXPECT_TRUE(splits.warnings.empty());
  add_images("val/emu", 7, 1);
  EXPECT_THAT(error(), HasSubstr("val/emu is a class that the training images do not have"));
}

TEST_F(ImageFolder, WithFewImagesSaysWhatItEvaluates) {
  add_images("a", 0, 9);
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->size(), 9);
  EXPECT_EQ(splits.test->size(), 9);
  EXPECT_THAT(splits.warnings, ElementsAre(HasSubstr("too few images")));
}

TEST_F(ImageFolder, CropsTheMiddleOfColourImages) {
  // Red on the left quarter, green in the middle half, blue on the right quarter.
  testing::Picture picture{16, 8, 3, {}};
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 16; ++x) {
      const int band = x < 4 ? 0 : x < 12 ? 1 : 2;
      for (int c = 0; c < 3; ++c) picture.bytes.push_back(c == band ? 255 : 0);
    }
  }
  write_png(folder_ / "a/a.png", picture);
  const DataSplits splits = open_data(request_);
  std::vector<float> image(48);
  std::int32_t label = -1;
  splits.train->read(0, image.data(), &label);
  for (const std::size_t pixel : {5U, 6U, 9U, 10U}) {
    EXPECT_NEAR(image[pixel], (0 - 0.485F) / 0.229F, 1e-5);
    EXPECT_NEAR(image[16 + pixel], (1 - 0.456F) / 0.224F, 1e-5);
    EXPECT_NEAR(image[32 + pixel], (0 - 0.406F) / 0.225F, 1e-5);
  }
  request_.channels = 1;
  std::vector<float> grey(16);
  open_data(request_).train->read(0, grey.data(), &label);
  EXPECT_NEAR(grey[5], (150.0F / 255 - 0.449F) / 0.226F, 1e-3);
  request_.channels = 2;
  EXPECT_THAT(error(), HasSubstr("cannot be read as 2"));
}

TEST_F(ImageFolder, ReadsJpegAtAnySize) {
  write_jpeg(folder_ / "a/a.JPEG", flat_picture(100, 70, {200, 90, 30}));
  for (const int size : {1, 7, 70, 150}) {
    request_.image_size = size;
    const DataSplits splits = open_data(request_);
    std::vector<float> image(static_cast<std::size_t>(3 * size * size));
    std::int32_t label = -1;
    splits.train->read(0, image.data(), &label);
    for (int i = 0; i < size * size; ++i) {
      EXPECT_NEAR(image[static_cast<std::size_t>(i)], (200.0F / 255 - 0.485F) / 0.229F, 0.06) << size;
    }
  }
}

TEST_F(ImageFolder, RefusesFoldersThatDoNotFit) {
  EXPECT_THAT(error(), HasSubstr("has no classes"));
  add_images("a", 0, 1);
  std::filesystem::create_directory(folder_ / "b");
  EXPECT_THAT(error(), HasSubstr("/b has no images"));
  add_images("b", 0, 1);
  request_.classes = 1;
  EXPECT_THAT(error(), HasSubstr("has 2 classes, more than the 1 asked for"));
  request_.classes = 0;
  request_.per_pixel_labels = true;
  EXPECT_THAT(error(), HasSubstr("one label per image"));
  request_.source = "images:" + folder_.path() + "/none";
  EXPECT_THAT(error(), HasSubstr("is not a folder"));
}

TEST_F(ImageFolder, LoaderReplacesNamesAndCountsBadImages) {
  add_images("a", 0, 6);
  write_file(folder_ / "a/102.png", "broken");
  write_file(folder_ / "a/105.png", "");
  const DataSplits splits = open_data(request_);
  SamplerOptions options;
  options.samples = 6;
  options.batch = 6;
  options.shuffle = false;
  Loader loader(*splits.train, Sampler(options), {}, 2);
  std::vector<float> images(6 * 48);
  std::vector<std::int32_t> labels(6);
  for (int epoch = 0; epoch < 2; ++epoch) {
    loader.next(images.data(), labels.data());
    std::vector<int> seen;
    for (std::size_t i = 0; i < 6; ++i) {
      seen.push_back(static_cast<int>(std::lround((images[i * 48] * 0.229F + 0.485F) * 255)));
    }
    EXPECT_THAT(seen, ElementsAre(0, 1, 3, 3, 4, 0));
  }
  EXPECT_EQ(loader.skipped_count(), 2);
  EXPECT_THAT(loader.skipped(), ElementsAre(HasSubstr("102.png"), HasSubstr("105.png")));
}

TEST_F(ImageFolder, LoaderGivesUpWhereNothingDecodes) {
  write_file(folder_ / "a/1.png", "broken");
  write_file(folder_ / "a/2.jpg", "broken");
  const DataSplits splits = open_data(request_);
  SamplerOptions options;
  options.samples = 2;
  options.batch = 1;
  Loader loader(*splits.train, Sampler(options));
  std::vector<float> image(48);
  std::int32_t label = -1;
  EXPECT_THAT(user_error([&] { loader.next(image.data(), &label); }),
              HasSubstr("can be used; the first: image"));
  EXPECT_THAT(user_error([&] { loader.next(image.data(), &label); }), HasSubstr("can be used"));
}

}  // namespace
}  // namespace penstock
