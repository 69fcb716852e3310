#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/dataset.h"
#include "data/files.h"

namespace penstock {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::npy;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;

std::string floats(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return bytes_of(values);
}

std::string labels(const std::vector<std::int64_t>& values) {
  return bytes_of(values);
}

class Npy : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(images_, npy("<f4", "(3, 2, 2, 2)", floats(24)));
    write_file(labels_, npy("<i8", "(3,)", labels({4, 0, 2})));
    request_.source = "npy:" + images_ + "," + labels_;
  }
  std::string error() {
    return user_error([&] { open_data(request_); });
  }

  TempFolder folder_;
  std::string images_ = folder_ / "images.npy";
  std::string labels_ = folder_ / "labels.npy";
  DataRequest request_;
};

TEST_F(Npy, TakesImagesAsTheyAre) {
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{2, 0, 2, 2, 5, false}));
  std::vector<float> image(8);
  std::int32_t label = -1;
  splits.train->read(1, image.data(), &label);
  EXPECT_EQ(label, 0);
  EXPECT_THAT(image, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST_F(Npy, EvaluatesOnTheTestFilesOrSaysWhatInstead) {
  DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.test->size(), 3);
  ASSERT_EQ(splits.warnings.size(), 1U);
  EXPECT_THAT(splits.warnings[0], HasSubstr("evaluation uses the training images"));
  const std::string test_images = folder_ / "ti.npy";
  const std::string test_labels = folder_ / "tl.npy";
  write_file(test_images, npy("<f4", "(1, 2, 2, 2)", floats(8)));
  write_file(test_labels, npy("<i8", "(1,)", labels({3})));
  request_.source += "," + test_images + "," + test_labels;
  splits = open_data(request_);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.test->geometry().classes, 5);
  EXPECT_TRUE(splits.warnings.empty());
}

TEST_F(Npy, ReadsLabelsPerPixelAndVolumes) {
  write_file(images_, npy("<f4", "(2, 1, 2, 1, 3)", floats(12)));
  write_file(labels_, npy("<i8", "(2, 2, 1, 3)", labels({0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1})));
  request_.per_pixel_labels = true;
  request_.volumetric = true;
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{1, 2, 1, 3, 7, true}));
  std::vector<float> image(6);
  std::vector<std::int32_t> pixel_labels(6);
  splits.train->read(1, image.data(), pixel_labels.data());
  EXPECT_THAT(image, ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(pixel_labels, ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_EQ(splits.train->resident_bytes(), 0);

  request_.classes = 6;
  const DataSplits fewer = open_data(request_);
  EXPECT_THAT(user_error([&] { fewer.train->read(1, image.data(), pixel_labels.data()); }),
              HasSubstr("label 6 of sample 1"));
  request_.classes = 0;
  request_.image_size = 4;
  EXPECT_THAT(error(), HasSubstr("cannot be resized to 4x4"));
  request_.image_size = 0;
  request_.depth = 3;
  EXPECT_THAT(error(), HasSubstr("depth 2, but 3"));
}

TEST_F(Npy, ResizesAndRepeatsChannels) {
  write_file(images_, npy("<f4", "(3, 1, 2, 2)", floats(12)));
  request_.channels = 2;
  request_.image_size = 1;
  const DataSplits splits = open_data(request_);
  std::vector<float> image(2);
  std::int32_t label = -1;
  splits.train->read(2, image.data(), &label);
  EXPECT_THAT(image, ElementsAre(9.5F, 9.5F));
  request_.image_size = 0;
  image.resize(8);
  open_data(request_).train->read(0, image.data(), &label);
  EXPECT_THAT(image, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST_F(Npy, RefusesWrongTypesAndOrder) {
  write_file(images_, npy("<f8", "(3, 2, 2, 2)", floats(48)));
  EXPECT_THAT(error(), HasSubstr("type '<f8', but float32"));
  write_file(images_, npy("<f4", "(3, 2, 2, 2)", floats(24), true));
  EXPECT_THAT(error(), HasSubstr("Fortran order"));
  write_file(images_, npy("<f4", "(3, 2, 2, 2)", floats(24)));
  write_file(labels_, npy("<i4", "(3,)", floats(3)));
  EXPECT_THAT(error(), HasSubstr("type '<i4', but int64"));
}

TEST_F(Npy, RefusesShapesThatDoNotFit) {
  write_file(images_, npy("<f4", "(6, 2, 2)", floats(24)));
  EXPECT_THAT(error(), HasSubstr("has shape [6, 2, 2], but the model needs images [N, C, H, W]"));
  write_file(images_, npy("<f4", "(6, 1, 2, 2)", floats(24)));
  EXPECT_THAT(error(), HasSubstr("labels.npy has shape [3]"));
  EXPECT_THAT(error(), HasSubstr("needs labels [6]"));
  write_file(images_, npy("<f4", "(0, 1, 2, 2)", ""));
  EXPECT_THAT(error(), HasSubstr("has shape [0, 1, 2, 2]"));
  write_file(images_, npy("<f4", "(3, 2, 2, 2)", floats(24)));
  request_.channels = 3;
  EXPECT_THAT(error(), HasSubstr("2 channels and cannot be read as 3"));
  request_.channels = 0;
  request_.per_pixel_labels = true;
  EXPECT_THAT(error(), HasSubstr("needs labels [3, 2, 2]"));
}

TEST_F(Npy, RefusesLabelsOutOfRange) {
  request_.classes = 4;
  EXPECT_THAT(error(), HasSubstr("label 4 of sample 0"));
  request_.classes = 0;
  write_file(labels_, npy("<i8", "(3,)", labels({4, -1, 2})));
  EXPECT_THAT(error(), HasSubstr("label -1 of sample 1"));
}

TEST_F(Npy, RefusesFilesCutShort) {
  const std::string whole = npy("<f4", "(3, 2, 2, 2)", floats(24));
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{5}, std::size_t{11}, std::size_t{40}, whole.size() - 1}) {
    write_file(images_, whole.substr(0, bytes));
    EXPECT_THAT(error(), HasSubstr("images.npy is cut short")) << bytes;
  }
  write_file(images_, whole + "x");
  EXPECT_THAT(error(), HasSubstr("has the wrong length"));
}

TEST_F(Npy, RefusesHostileHeaders) {
  write_file(images_, "PK this is a zip of arrays, not one of them");
  EXPECT_THAT(error(), HasSubstr("is not a .npy file"));
  for (const char* shape :
       {"3, 2", "(3, -2, 2, 2)", "(3, 2, 2, 99999999999999999999)", "(3 2 2 2)", "(3, x)", "("}) {
    write_file(images_, npy("<f4", shape, floats(24)));
    EXPECT_THAT(error(), HasSubstr("malformed .npy header")) << shape;
  }
  write_file(images_, npy("<f4", "(4611686018427387904, 4, 4, 4)", floats(24)));
  EXPECT_THAT(error(), HasSubstr("is cut short"));
  std::string no_shape = npy("<f4", "(3, 2, 2, 2)", floats(24));
  no_shape.replace(no_shape.find("shape"), 5, "shope");
  write_file(images_, no_shape);
  EXPECT_THAT(error(), HasSubstr("malformed .npy header"));
}

TEST_F(Npy, RefusesAMissingFileOrName) {
  request_.source = "npy:" + images_;
  EXPECT_THAT(error(), HasSubstr("must be npy:IMAGES.npy,LABELS.npy"));
  request_.source = "npy:" + images_ + ",";
  EXPECT_THAT(error(), HasSubstr("must be npy:IMAGES.npy,LABELS.npy"));
  request_.source = "npy:" + images_ + "," + folder_.path() + "/none.npy";
  EXPECT_THAT(error(), HasSubstr("none.npy: No such file"));
  request_.source = "npy:" + images_ + "," + folder_.path();
  EXPECT_THAT(error(), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace penstock
