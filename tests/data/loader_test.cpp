#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "data/files.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::user_error;

/// Image and label say which sample they are; can be told to fail or to wait.
class FakeDataset final : public Dataset {
 public:
  explicit FakeDataset(std::int64_t size) : Dataset("fake", {1, 0, 2, 2, 1000, false}), size_(size) {}
  std::int64_t size() const override { return size_; }
  void read(std::int64_t index, float* image, std::int32_t* labels) const override {
    if (index == fail_at) throw RunError("the disk is gone");
    std::fill(image, image + 4, static_cast<float>(index));
    *labels = static_cast<std::int32_t>(index);
    ++reads;
  }
  std::int64_t resident_bytes() const override { return 0; }
  std::int64_t working_bytes() const override { return 7; }

  std::int64_t fail_at = -1;
  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t size_;
};

Sampler make_sampler(std::int64_t samples, std::int64_t batch) {
  SamplerOptions options;
  options.samples = samples;
  options.batch = batch;
  options.seed = 9;
  return Sampler(options);
}

std::vector<std::int32_t> take(Loader& loader) {
  const auto batch = static_cast<std::size_t>(loader.sampler().options().batch);
  std::vector<float> images(batch * 4);
  std::vector<std::int32_t> labels(batch);
  loader.next(images.data(), labels.data());
  for (std::size_t i = 0; i < batch; ++i) {
    EXPECT_EQ(images[4 * i], static_cast<float>(labels[i]));
    EXPECT_EQ(images[4 * i + 3], static_cast<float>(labels[i]));
  }
  return labels;
}

TEST(Loader, GivesTheSamplersBatchesInOrder) {
  const FakeDataset data(23);
  const Sampler sampler = make_sampler(23, 5);
  Loader loader(data, sampler);
  DataPosition position;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(loader.position(), position);
    const auto indices = sampler.batch_indices(position);
    EXPECT_EQ(take(loader), std::vector<std::int32_t>(indices.begin(), indices.end()));
    position = sampler.next(position);
  }
}

TEST(Loader, ResumesAnywhere) {
  const FakeDataset data(23);
  Loader whole(data, make_sampler(23, 5));
  for (int i = 0; i < 6; ++i) take(whole);
  const DataPosition position = whole.position();
  EXPECT_EQ(position, (DataPosition{1, 2}));
  Loader resumed(data, make_sampler(23, 5), position);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(take(resumed), take(whole));
  EXPECT_EQ(resumed.position(), whole.position());
  EXPECT_THAT(user_error([&] {
                const Loader beyond(data, make_sampler(23, 5), {0, 4});
              }),
              HasSubstr("fake has 4 batches of 5"));
}

TEST(Loader, ReadsNoMoreThanAskedFor) {
  const FakeDataset data(23);
  {
    Loader loader(data, make_sampler(23, 5), {}, 3);
    for (int i = 0; i < 3; ++i) take(loader);
    EXPECT_THROW(take(loader), InternalError);
  }
  EXPECT_EQ(data.reads, 15);
}

TEST(Loader, KeepsAtMostOneBatchAhead) {
  const FakeDataset data(100);
  {
    Loader loader(data, make_sampler(100, 5));
    take(loader);
  }
  EXPECT_LE(data.reads, 10);
  EXPECT_EQ(Loader::memory_bytes(data, 5), 5 * (4 + 1) * 4 + 7 + data.size() / 8);
}

TEST(Loader, GivesABatchInPartsFromASmallBuffer) {
  const FakeDataset data(40);
  const Sampler sampler = make_sampler(40, 10);
  Loader loader(data, sampler, {}, 3, 4);
  DataPosition position;
  for (int batch = 0; batch < 3; ++batch) {
    const auto indices = sampler.batch_indices(position);
    std::vector<float> images(10 * 4);
    std::vector<std::int32_t> labels(10);
    // Parts that are not the buffer's size, one of them larger than the buffer.
    std::int64_t first = 0;
    for (const std::int64_t count : {3, 6, 1}) {
      loader.next_images(images.data() + first * 4, count);
      first += count;
    }
    EXPECT_EQ(loader.position(), position);
    loader.next_labels(labels.data(), 10);
    EXPECT_EQ(labels, std::vector<std::int32_t>(indices.begin(), indices.end()));
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(images[4 * i + 3], static_cast<float>(labels[i]));
    position = sampler.next(position);
    EXPECT_EQ(loader.position(), position);
  }
  EXPECT_EQ(data.reads, 30);
  EXPECT_EQ(Loader::memory_bytes(data, 10, 4), (4 * 4 + 10) * 4 + 7 + data.size() / 8);
}

TEST(Loader, RefusesLabelsWhoseImagesTheBufferCannotHold) {
  const FakeDataset data(40);
  Loader loader(data, make_sampler(40, 10), {}, 1, 4);
  std::vector<std::int32_t> labels(10);
  EXPECT_THROW(loader.next_labels(labels.data(), 10), InternalError);
}

TEST(Loader, ForwardsTheFirstErrorAfterTheBatchesBeforeIt) {
  FakeDataset data(20);
  SamplerOptions options;
  options.samples = 20;
  options.batch = 5;
  options.shuffle = false;
  data.fail_at = 12;
  Loader loader(data, Sampler(options));
  EXPECT_EQ(take(loader).front(), 0);
  EXPECT_EQ(take(loader).front(), 5);
  EXPECT_THROW(take(loader), RunError);
  EXPECT_THROW(take(loader), RunError);
  EXPECT_EQ(loader.position(), (DataPosition{0, 2}));
}

TEST(Loader, StopsAtAnyMoment) {
  const FakeDataset data(5000);
  for (int i = 0; i < 50; ++i) {
    Loader loader(data, make_sampler(5000, 1 + i * 100));
    if (i % 3 == 0) take(loader);
  }
}

}  // namespace
}  // namespace penstock
