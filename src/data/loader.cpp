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

std::int64_t room_for_images(std::int64_t batch, std::int64_t room) {
  return room > 0 ? std::min(room, batch) : batch;
}

/// A label a sample is small and may be asked for when all images are out; images of labels come with them.
std::int64_t room_for_labels(const DataGeometry& geometry, std::int64_t batch, std::int64_t room) {
  return geometry.label_values() > 1 ? room_for_images(batch, room) : batch;
}

}  // namespace

Loader::Loader(const Dataset& dataset, Sampler sampler, DataPosition start, std::int64_t batches,
               std::int64_t room)
    : dataset_(dataset), sampler_(std::move(sampler)), position_(start), batches_left_(batches) {
  require(sampler_.options().samples == dataset_.size(), "sampler and data set differ in size");
  if (start.epoch < 0 || start.batch < 0 || start.batch >= sampler_.batches_per_epoch()) {
    throw UserError(
        fmt::format("batch {} of an epoch is asked for, but {} has {} batches of {}: is it another data set?",
                    start.batch, dataset_.name(), sampler_.batches_per_epoch(), sampler_.options().batch));
  }
  const DataGeometry& geometry = dataset_.geometry();
  const std::int64_t batch = sampler_.options().batch;
  images_out_.room = room_for_images(batch, room);
  images_out_.values = geometry.image_values();
  labels_out_.room = room_for_labels(geometry, batch, room);
  labels_out_.values = geometry.label_values();
  images_ = std::make_unique_for_overwrite<float[]>(
      static_cast<std::size_t>(images_out_.room * images_out_.values));
  labels_ = std::make_unique_for_overwrite<std::int32_t[]>(
      static_cast<std::size_t>(labels_out_.room * labels_out_.values));
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
  const std::int64_t batch = sampler_.options().batch, room = std::min(images_out_.room, labels_out_.room);
  for (std::int64_t first = 0; first < batch; first += room) {
    const std::int64_t count = std::min(room, batch - first);
    next_images(images + first * images_out_.values, count);
    next_labels(labels + first * labels_out_.values, count);
  }
}

void Loader::next_images(float* images, std::int64_t count) {
  take(images_out_, labels_out_, images_.get(), images, count);
}

void Loader::next_labels(std::int32_t* labels, std::int64_t count) {
  take(labels_out_, images_out_, labels_.get(), labels, count);
}

template <typename T>
void Loader::take(Out& out, const Out& other, const T* ring, T* to, std::int64_t count) {
  require(batches_left_ > 0, "all batches of the loader are out");
  require(out.of_batch + count <= sampler_.options().batch, "these samples of the batch are out already");
  while (count > 0) {
    const std::int64_t part = std::min(count, out.room);
    require(out.in_all + part <= other.in_all + other.room, "the loader's buffer does not hold so much");
    wait_for_samples(out.in_all + part);
    for (std::int64_t i = 0; i < part; ++i, to += out.values)
      std::copy_n(ring + (out.in_all + i) % out.room * out.values, out.values, to);
    {
      const std::lock_guard lock(mutex_);
      out.in_all += part;
    }
    changed_.notify_all();
    out.of_batch += part;
    count -= part;
  }
  if (out.of_batch == sampler_.options().batch && other.of_batch == out.of_batch) move_on();
}

void Loader::wait_for_samples(std::int64_t in_all) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ >= in_all || error_ != nullptr; });
  if (ready_ < in_all) std::rethrow_exception(error_);
}

void Loader::move_on() {
  images_out_.of_batch = labels_out_.of_batch = 0;
  position_ = sampler_.next(position_);
  --batches_left_;
}

void Loader::prepare_batches(DataPosition position, std::int64_t batches) {
  for (; batches > 0; --batches, position = sampler_.next(position)) {
    try {
      if (!fill(position)) return;
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      changed_.notify_all();
      return;
    }
  }
}

bool Loader::fill(const DataPosition& position) {
  for (const std::int64_t index : sampler_.batch_indices(position)) {
    if (!wait_for_place()) return false;
    // Only this thread changes ready_.
    read_or_replace(index, images_.get() + ready_ % images_out_.room * images_out_.values,
                    labels_.get() + ready_ % labels_out_.room * labels_out_.values);
    {
      const std::lock_guard lock(mutex_);
      ++ready_;
    }
    changed_.notify_all();
  }
  return true;
}

bool Loader::wait_for_place() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return stop_ ||
           (ready_ - images_out_.in_all < images_out_.room && ready_ - labels_out_.in_all < labels_out_.room);
  });
  return !stop_;
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

std::int64_t Loader::memory_bytes(const Dataset& dataset, std::int64_t batch, std::int64_t room) {
  const DataGeometry& geometry = dataset.geometry();
  const std::int64_t values = room_for_images(batch, room) * geometry.image_values() +
                              room_for_labels(geometry, batch, room) * geometry.label_values();
  return values * 4 + dataset.working_bytes() + dataset.size() / 8;
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
