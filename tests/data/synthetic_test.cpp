#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/dataset.h"

namespace penstock {
namespace {

struct Sample {
  std::vector<float> image;
  std::vector<std::int32_t> labels;
};

Sample read(const Dataset& data, std::int64_t index) {
  Sample sample;
  sample.image.resize(static_cast<std::size_t>(data.geometry().image_values()), NAN);
  sample.labels.resize(static_cast<std::size_t>(data.geometry().label_values()), -1);
  data.read(index, sample.image.data(), sample.labels.data());
  return sample;
}

DataRequest make_request(bool per_pixel_labels, bool volumetric) {
  DataRequest request;
  request.source = "synthetic";
  request.channels = 3;
  request.image_size = volumetric ? 14 : 27;
  request.depth = volumetric ? 9 : 0;
  request.classes = 5;
  request.seed = 3;
  request.per_pixel_labels = per_pixel_labels;
  request.volumetric = volumetric;
  return request;
}

class Synthetic : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  DataRequest request_ = make_request(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

TEST_P(Synthetic, IsAFunctionOfSeedSplitAndIndex) {
  const DataSplits a = open_data(request_);
  const DataSplits b = open_data(request_);
  EXPECT_EQ(read(*a.train, 77).image, read(*b.train, 77).image);
  EXPECT_EQ(read(*a.train, 77).labels, read(*b.train, 77).labels);
  EXPECT_NE(read(*a.train, 77).image, read(*a.train, 78).image);
  EXPECT_NE(read(*a.train, 77).image, read(*a.test, 77).image);
  request_.seed = 4;
  EXPECT_NE(read(*a.train, 77).image, read(*open_data(request_).train, 77).image);
}

TEST_P(Synthetic, HasUnitVarianceAndAllLabels) {
  const DataSplits splits = open_data(request_);
  double sum = 0;
  double squares = 0;
  double count = 0;
  std::map<std::int32_t, int> labels;
  for (std::int64_t i = 0; i < 300; ++i) {
    const Sample sample = read(*splits.train, i);
    for (const float value : sample.image) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += static_cast<double>(value) * value;
      count += 1;
    }
    for (const std::int32_t label : sample.labels) ++labels[label];
  }
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.15);
  EXPECT_EQ(labels.size(), 5U);
  EXPECT_EQ(labels.begin()->first, 0);
  EXPECT_EQ(labels.rbegin()->first, 4);
}

INSTANTIATE_TEST_SUITE_P(All, Synthetic, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST(SyntheticImages, CanBeLearnt) {
  // The mean image of each class, from 200 samples, tells the class of nearly all further ones.
  const DataSplits splits = open_data(make_request(false, false));
  const auto values = static_cast<std::size_t>(splits.train->geometry().image_values());
  std::vector<std::vector<double>> means(5, std::vector<double>(values));
  std::vector<int> counts(5);
  for (std::int64_t i = 0; i < 200; ++i) {
    const Sample sample = read(*splits.train, i);
    const auto label = static_cast<std::size_t>(sample.labels[0]);
    ++counts[label];
    for (std::size_t k = 0; k < values; ++k) means[label][k] += sample.image[k];
  }
  int right = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Sample sample = read(*splits.test, i);
    double best = 1e30;
    std::size_t guess = 0;
    for (std::size_t label = 0; label < 5; ++label) {
      double distance = 0;
      for (std::size_t k = 0; k < values; ++k) {
        const double step = sample.image[k] - means[label][k] / counts[label];
        distance += step * step;
      }
      if (distance < best) guess = label;
      best = std::min(best, distance);
    }
    right += guess == static_cast<std::size_t>(sample.labels[0]) ? 1 : 0;
  }
  EXPECT_GE(right, 95);
}

TEST(SyntheticPixels, CarryTheirClassInTheirLevel) {
  const DataSplits splits = open_data(make_request(true, false));
  std::vector<double> sums(5);
  std::vector<double> counts(5);
  for (std::int64_t i = 0; i < 50; ++i) {
    const Sample sample = read(*splits.train, i);
    for (std::size_t k = 0; k < sample.labels.size(); ++k) {
      sums.at(static_cast<std::size_t>(sample.labels[k])) += sample.image[k];
      counts.at(static_cast<std::size_t>(sample.labels[k])) += 1;
    }
  }
  for (std::size_t k = 1; k < 5; ++k) EXPECT_GT(sums[k] / counts[k], sums[k - 1] / counts[k - 1] + 0.2);
}

}  // namespace
}  // namespace penstock
