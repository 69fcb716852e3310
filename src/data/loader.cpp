#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/threads.h"

namespace penstock {
namespace {

/// So many samples may always be skipped, and then one in so many of those that were met.
constexpr std::int64_t kFewSkipped = 10;
constexpr std::int64_t kSkippedShare = 10;
constexpr std::int64_t kLeastMet = 1000;

}  // namespace

Loader::Loader(const Dataset& dataset, Sampler sampler, DataPosition start, std::int64_t batches)
    : dataset_(dataset), sampler_(std::move(sampler)), position_(start), batches_left_(batches) {
  require(sampler_.options().samples == dataset_.size(), "sampler and data set differ in size");
  if (start.epoch < 0 || start.batch < 0 || start.batch >= sampler_.batches_per_epoch()) {
    throw UserError(
        fmt::format("batch {} of an epoch is asked for, but {} has {} batches of {}: is it another data set?",
                    start.batch, dataset_.name(), sampler_.batches_per_epoch(), sampler_.options().batch));
  }
  const DataGeometry& geometry = dataset_.geometry();
  const std::int64_t batch = sampler_.options().batch;
  images_ =
      std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(batch * geometry.image_values()));
  labels_ = std::make_unique_for_overwrite<std::int32_t[]>(
      static_cast<std::size_t>(batch * geometry.label_values()));
  is_skipped_.resize(static_cast<std::size_t>(dataset_.size()));
  thread_ = start_thread([this, start, batches] { prepare_batches(start, batches); }, "reads the data");
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::next(float* images, std::int32_t* labels) {
  next_images(images);
  next_labels(labels);
}

void Loader::next_images(float* images) {
  require(!images_out_, "the images of this batch are out already");
  wait_until_full();
  std::copy_n(images_.get(), sampler_.options().batch * dataset_.geometry().image_values(), images);
  images_out_ = true;
  if (labels_out_) move_on();
}

void Loader::next_labels(std::int32_t* labels) {
  require(!labels_out_, "the labels of this batch are out already");
  wait_until_full();
  std::copy_n(labels_.get(), sampler_.options().batch * dataset_.geometry().label_values(), labels);
  labels_out_ = true;
  if (images_out_) move_on();
}

void Loader::wait_until_full() {
  require(batches_left_ > 0, "all batches of the loader are out");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return full_ || error_ != nullptr; });
  if (!full_) std::rethrow_exception(error_);
}

void Loader::move_on() {
  {
    const std::lock_guard lock(mutex_);
    full_ = false;
  }
  changed_.notify_all();
  images_out_ = labels_out_ = false;
  position_ = sampler_.next(position_);
  --batches_left_;
}

void Loader::prepare_batches(DataPosition position, std::int64_t batches) {
  for (; batches > 0; --batches, position = sampler_.next(position)) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !full_ || stop_; });
      if (stop_) return;
    }
    std::exception_ptr error;
    try {
      if (!fill(position)) return;
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      full_ = error == nullptr;
      error_ = error;
    }
    changed_.notify_all();
    if (error != nullptr) return;
  }
}

bool Loader::fill(const DataPosition& position) {
  const DataGeometry& geometry = dataset_.geometry();
  float* image = images_.get();
  std::int32_t* labels = labels_.get();
  for (const std::int64_t index : sampler_.batch_indices(position)) {
    if (stopping()) return false;
    read_or_replace(index, image, labels);
    image += geometry.image_values();
    labels += geometry.label_values();
  }
  return true;
}

void Loader::read_or_replace(std::int64_t index, float* image, std::int32_t* labels) {
  ++reads_;
  // The replacement depends on the data alone, so that every run and every rank takes the same one.
  for (std::int64_t tries = 0; tries < dataset_.size(); ++tries) {
    const std::int64_t here = (index + tries) % dataset_.size();
    try {
      dataset_.read(here, image, labels);
      return;
    } catch (const SampleError& error) {
      skip(here, error.what());
    }
    if (stopping()) return;
  }
  throw UserError(
      fmt::format("no sample of {} can be used; the first: {}", dataset_.name(), skipped().front()));
}

void Loader::skip(std::int64_t index, const char* why) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(index);
  if (is_skipped_[at]) return;
  is_skipped_[at] = true;
  ++skipped_count_;
  if (skipped_.size() < kNamedSkipped) skipped_.emplace_back(why);
  // Bad ones may lie side by side, so the share is taken of some samples at least.
  const std::int64_t met = std::min(dataset_.size(), std::max(reads_, kLeastMet));
  if (skipped_count_ <= kFewSkipped || skipped_count_ <= met / kSkippedShare) return;
  throw UserError(
      fmt::format("{} samples of {} cannot be used, more than a tenth of what was read; mend or remove them; "
                  "the first: {}",
                  skipped_count_, dataset_.name(), skipped_.front()));
}

bool Loader::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

std::int64_t Loader::memory_bytes(const Dataset& dataset, std::int64_t batch) {
  const DataGeometry& geometry = dataset.geometry();
  return batch * (geometry.image_values() + geometry.label_values()) * 4 + dataset.working_bytes() +
         dataset.size() / 8;
}

std::vector<std::string> Loader::skipped() const {
  const std::lock_guard lock(mutex_);
  return skipped_;
}

std::int64_t Loader::skipped_count() const {
  const std::lock_guard lock(mutex_);
  return skipped_count_;
}

}  // namespace penstock
