#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/files.h"

namespace penstock {
namespace {

using testing::cut_file;
using ::testing::HasSubstr;
using testing::idx_images;
using testing::idx_labels;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;
using testing::write_gzip;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

class Mnist : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / kTrainImages, idx_images(4, 3, 3));
    write_file(folder_ / kTrainLabels, idx_labels({1, 0, 9, 4}));
    write_gzip(folder_ / "t10k-images-idx3-ubyte.gz", idx_images(2, 3, 3));
    write_gzip(folder_ / "t10k-labels-idx1-ubyte.gz", idx_labels({2, 3}));
    request_.source = "mnist:" + folder_.path();
  }
  std::string error() {
    return user_error([&] { open_data(request_); });
  }

  TempFolder folder_;
  DataRequest request_;
};

float normalised(int byte) {
  return (static_cast<float>(byte) / 255.0F - 0.1307F) / 0.3081F;
}

TEST_F(Mnist, ReadsPlainAndGzippedFilesAlike) {
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->size(), 4);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{1, 0, 3, 3, 10, false}));
  std::vector<float> image(9);
  std::int32_t label = -1;
  splits.train->read(2, image.data(), &label);
  EXPECT_EQ(label, 9);
  for (int i = 0; i < 9; ++i) EXPECT_FLOAT_EQ(image[static_cast<std::size_t>(i)], normalised(18 + i));
  splits.test->read(1, image.data(), &label);
  EXPECT_EQ(label, 3);
  for (int i = 0; i < 9; ++i) EXPECT_FLOAT_EQ(image[static_cast<std::size_t>(i)], normalised(9 + i));
}

TEST_F(Mnist, KeepsOnlyGzippedImagesInMemory) {
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->resident_bytes(), 4);
  EXPECT_EQ(splits.test->resident_bytes(), 2 * 9 + 2);
}

TEST_F(Mnist, RepeatsGreyAndResizes) {
  request_.channels = 3;
  request_.image_size = 6;
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{3, 0, 6, 6, 10, false}));
  std::vector<float> image(3 * 36);
  std::int32_t label = -1;
  splits.train->read(0, image.data(), &label);
  // Corners of a bilinear enlargement are the corners themselves; one step in, a quarter of the way to the
  // next.
  EXPECT_NEAR(image[0], normalised(0), 1e-6);
  EXPECT_NEAR(image[1], 0.75F * normalised(0) + 0.25F * normalised(1), 1e-5);
  EXPECT_NEAR(image[35], normalised(8), 1e-5);
  for (std::size_t i = 0; i < 36; ++i) {
    EXPECT_EQ(image[i], image[36 + i]);
    EXPECT_EQ(image[i], image[72 + i]);
  }
}

TEST_F(Mnist, AllowsMoreClassesThanThereAre) {
  request_.classes = 100;
  EXPECT_EQ(open_data(request_).train->geometry().classes, 100);
}

TEST_F(Mnist, RefusesLabelsOutOfRange) {
  request_.classes = 9;
  EXPECT_THAT(error(), HasSubstr("label 9 of sample 2"));
  request_.classes = 0;
  write_file(folder_ / kTrainLabels, idx_labels({1, 0, 10, 4}));
  EXPECT_THAT(error(), HasSubstr("label 10 of sample 2"));
}

TEST_F(Mnist, RefusesAMissingFileOrFolder) {
  std::filesystem::remove(folder_ / kTrainLabels);
  EXPECT_THAT(error(), HasSubstr("has neither train-labels-idx1-ubyte nor"));
  request_.source = "mnist:" + folder_.path() + "/none";
  EXPECT_THAT(error(), HasSubstr("/none is not a folder"));
}

TEST_F(Mnist, RefusesAFileCutShort) {
  cut_file(folder_ / kTrainImages, 16 + 35);
  EXPECT_THAT(error(), HasSubstr("cut short: it has 51 bytes, its header promises 52"));
  cut_file(folder_ / kTrainImages, 10);
  EXPECT_THAT(error(), HasSubstr("cut short"));
  cut_file(folder_ / kTrainImages, 0);
  EXPECT_THAT(error(), HasSubstr("cut short"));
}

TEST_F(Mnist, RefusesLabelsCutShort) {
  cut_file(folder_ / kTrainLabels, 11);
  EXPECT_THAT(error(), HasSubstr("train-labels-idx1-ubyte is cut short"));
}

TEST_F(Mnist, RefusesAFileThatIsTooLong) {
  write_file(folder_ / kTrainImages, idx_images(4, 3, 3) + "x");
  EXPECT_THAT(error(), HasSubstr("too long"));
  write_file(folder_ / kTrainImages, idx_images(4, 3, 3));
  write_file(folder_ / kTrainLabels, idx_labels({1, 0, 9, 4}) + "x");
  EXPECT_THAT(error(), HasSubstr("longer than its header says"));
}

TEST_F(Mnist, RefusesWhatIsNotIdx) {
  write_file(folder_ / kTrainImages, "P5 3 3 255 not an IDX file at all");
  EXPECT_THAT(error(), HasSubstr("is not an IDX file of images"));
  write_file(folder_ / kTrainImages, idx_labels({1, 0, 9, 4}));
  EXPECT_THAT(error(), HasSubstr("is not an IDX file of images: it begins with 00000801"));
}

TEST_F(Mnist, RefusesAHeaderThatPromisesTheMoon) {
  std::string images = idx_images(4, 3, 3);
  images.replace(4, 12, std::string(12, '\xff'));
  write_file(folder_ / kTrainImages, images);
  EXPECT_THAT(error(), HasSubstr("promises more bytes"));
  std::filesystem::remove(folder_ / kTrainImages);
  images.replace(4, 12, std::string("\x7f\xff\xff\xff\0\0\0\x1c\0\0\0\x1c", 12));
  write_gzip(folder_ / "train-images-idx3-ubyte.gz", images);
  EXPECT_THAT(error(), HasSubstr("promises more bytes"));
}

TEST_F(Mnist, RefusesCountsThatDisagree) {
  write_file(folder_ / kTrainLabels, idx_labels({1, 0, 9}));
  EXPECT_THAT(error(), HasSubstr("holds 4 images"));
  EXPECT_THAT(error(), HasSubstr("holds 3 labels"));
}

TEST_F(Mnist, RefusesAnEmptyFile) {
  write_file(folder_ / kTrainImages, idx_images(0, 3, 3));
  EXPECT_THAT(error(), HasSubstr("is empty"));
}

TEST_F(Mnist, RefusesDamagedGzip) {
  const std::string path = folder_ / "t10k-images-idx3-ubyte.gz";
  std::string bytes = testing::read_file(path);
  std::string flipped = bytes;
  flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 0x55);
  write_file(path, flipped);
  EXPECT_THAT(error(), HasSubstr("t10k-images-idx3-ubyte.gz is damaged"));
  std::string wrong_checksum = bytes;
  wrong_checksum[bytes.size() - 8] = static_cast<char>(wrong_checksum[bytes.size() - 8] ^ 1);
  write_file(path, wrong_checksum);
  EXPECT_THAT(error(), HasSubstr("t10k-images-idx3-ubyte.gz is damaged"));
  write_file(path, bytes.substr(0, bytes.size() - 6));
  EXPECT_THAT(error(), HasSubstr("t10k-images-idx3-ubyte.gz is damaged or cut short"));
}

TEST_F(Mnist, RefusesWhatItCannotBe) {
  request_.per_pixel_labels = true;
  EXPECT_THAT(error(), HasSubstr("one label per image"));
  request_.per_pixel_labels = false;
  request_.volumetric = true;
  EXPECT_THAT(error(), HasSubstr("needs volumes"));
}

TEST(OpenData, NamesTheKnownSources) {
  for (const char* source : {"imagenet", "mnist", "mnist:", "synthetic:3", ""}) {
    DataRequest request;
    request.source = source;
    EXPECT_THAT(user_error([&] { open_data(request); }), HasSubstr("use fashion-mnist, mnist:DIR")) << source;
  }
}

TEST(FashionMnist, IsReadWhereInstalled) {
  DataRequest request;
  request.source = "fashion-mnist";
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    EXPECT_THAT(user_error([&] { open_data(request); }), HasSubstr("package dataset-fashion-mnist"));
    return;
  }
  const DataSplits splits = open_data(request);
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{1, 0, 28, 28, 10, false}));
  std::vector<float> image(784);
  std::vector<int> counts(10);
  double sum = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < 60000; i += 10) {
    std::int32_t label = -1;
    splits.train->read(i, image.data(), &label);
    ++counts.at(static_cast<std::size_t>(label));
    for (const float value : image) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  EXPECT_NEAR(sum / (6000 * 784), 0, 0.02);
  EXPECT_NEAR(squares / (6000 * 784), 1, 0.02);
  for (const int count : counts) EXPECT_NEAR(count, 600, 100);
}

}  // namespace
}  // namespace penstock
