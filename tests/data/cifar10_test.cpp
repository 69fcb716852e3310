#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/files.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;

std::string record(int label, int red, int green, int blue) {
  std::string text(1, static_cast<char>(label));
  for (const int colour : {red, green, blue}) text += std::string(1024, static_cast<char>(colour));
  return text;
}

class Cifar10 : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 1; i <= 5; ++i) {
      write_file(folder_ / ("data_batch_" + std::to_string(i) + ".bin"),
                 record(i, 10 * i, 0, 0) + record(9, 0, 255, i));
    }
    write_file(folder_ / "test_batch.bin", record(0, 255, 255, 255));
    request_.source = "cifar10:" + folder_.path();
  }
  std::string error() {
    return user_error([&] { open_data(request_); });
  }

  TempFolder folder_;
  DataRequest request_;
};

TEST_F(Cifar10, ReadsAllBatchesInOrder) {
  const DataSplits splits = open_data(request_);
  EXPECT_EQ(splits.train->size(), 10);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.train->geometry(), (DataGeometry{3, 0, 32, 32, 10, false}));
  std::vector<float> image(3072);
  std::int32_t label = -1;
  for (int i = 0; i < 5; ++i) {
    splits.train->read(2 * i, image.data(), &label);
    EXPECT_EQ(label, i + 1);
    EXPECT_FLOAT_EQ(image[1023], (static_cast<float>(10 * (i + 1)) / 255.0F - 0.4914F) / 0.2470F);
    splits.train->read(2 * i + 1, image.data(), &label);
    EXPECT_EQ(label, 9);
    EXPECT_FLOAT_EQ(image[1024], (1.0F - 0.4822F) / 0.2435F);
    EXPECT_FLOAT_EQ(image[3071], (static_cast<float>(i + 1) / 255.0F - 0.4465F) / 0.2616F);
  }
}

TEST_F(Cifar10, TurnsColourIntoGrey) {
  request_.channels = 1;
  const DataSplits splits = open_data(request_);
  std::vector<float> image(1024);
  std::int32_t label = -1;
  splits.train->read(1, image.data(), &label);
  EXPECT_NEAR(image[0], (150.0F / 255.0F - 0.4734F) / 0.2507F, 1e-3);
  request_.channels = 4;
  EXPECT_THAT(error(), HasSubstr("3 channels and cannot be read as 4"));
}

TEST_F(Cifar10, RefusesBadFiles) {
  testing::cut_file(folder_ / "data_batch_3.bin", 3073 + 100);
  EXPECT_THAT(error(), HasSubstr("data_batch_3.bin is cut short"));
  write_file(folder_ / "data_batch_3.bin", record(1, 0, 0, 0) + record(10, 0, 0, 0));
  EXPECT_THAT(error(), HasSubstr("label 10 of sample 1 in"));
  std::filesystem::remove(folder_ / "data_batch_3.bin");
  EXPECT_THAT(error(), HasSubstr("data_batch_3.bin: No such file"));
}

TEST_F(Cifar10, RefusesTooFewClasses) {
  request_.classes = 9;
  EXPECT_THAT(error(), HasSubstr("cifar10 has 10 classes, more than the 9 asked for"));
}

}  // namespace
}  // namespace penstock
