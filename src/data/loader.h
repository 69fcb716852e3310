#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace penstock {

/// Prepares samples ahead of the step. A thread fills the loader's buffer, a ring of some samples, while the
/// caller computes; next() copies samples out and the thread goes on in the place that this makes. It sleeps
/// when there is nothing to do. Does not own the data set, which must outlive it. One thread at a time may
/// call.
class Loader {
 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  /// Starts at any position; prepares `batches` batches in all. Throws UserError if the data has no such
  /// position. `room`: samples that the buffer holds; 0, or more than a batch: a batch.
  Loader(const Dataset& dataset, Sampler sampler, DataPosition start = {}, std::int64_t batches = kEndless,
         std::int64_t room = 0);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Writes the batch at position(): images [batch, C, (D,) H, W] and labels [batch] or [batch, (D,) H, W],
  /// and moves on. Waits if it is not ready. What went wrong in the thread is thrown here, once the batches
  /// before it are out.
  void next(float* images, std::int32_t* labels);

  /// The same in parts: `count` samples each, from the batch's first to its last; the loader moves on when
  /// all is out. Images and labels may come in either order where the buffer holds a batch. Where it holds
  /// less, labels follow their images: a label a sample at any time, whole images of labels before the next
  /// images of another `room` samples.
  void next_images(float* images, std::int64_t count);
  void next_labels(std::int32_t* labels, std::int64_t count);

  /// Where the batch is that next() will give: what a checkpoint has to keep.
  DataPosition position() const { return position_; }
  const Sampler& sampler() const { return sampler_; }

  /// What a loader takes of memory: its buffer and what reading one sample needs.
  static std::int64_t memory_bytes(const Dataset& dataset, std::int64_t batch, std::int64_t room = 0);

  /// Samples met so far that could not be used; another was taken for each every time. More than a tenth of
  /// what was met, and more than a few, end the run by an error of next().
  std::int64_t skipped_count() const;
  /// One line for each of the first kNamedSkipped of them.
  std::vector<std::string> skipped() const;
  static constexpr std::size_t kNamedSkipped = 20;

 private:
  /// How far one kind of what a sample has is out.
  struct Out {
    std::int64_t room = 0;      ///< samples that its ring holds
    std::int64_t values = 0;    ///< of a sample
    std::int64_t of_batch = 0;  ///< samples of the batch at position()
    std::int64_t in_all = 0;    ///< guarded by mutex_
  };
  template <typename T>
  void take(Out& out, const Out& other, const T* ring, T* to, std::int64_t count);
  void wait_for_samples(std::int64_t in_all);
  void move_on();
  void prepare_batches(DataPosition position, std::int64_t batches);
  /// Returns whether the batch is complete, false if the loader is to stop.
  bool fill(const DataPosition& position);
  /// Until the rings have place for another sample; false if the loader is to stop.
  bool wait_for_place();
  void read_or_replace(std::int64_t index, float* image, std::int32_t* labels);
  /// Takes note of a sample that cannot be used; throws UserError if there are too many.
  void skip(std::int64_t index, const char* why);
  bool stopping() const;

  const Dataset& dataset_;
  const Sampler sampler_;
  DataPosition position_;
  std::int64_t batches_left_;
  Out images_out_, labels_out_;

  /// Rings: places of samples that are ready and not out belong to next(), the others to the thread.
  std::unique_ptr<float[]> images_;
  std::unique_ptr<std::int32_t[]> labels_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by mutex_.
  std::int64_t ready_ = 0;  ///< samples read in all
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<bool> is_skipped_;  ///< by sample: each counts once
  std::int64_t skipped_count_ = 0;
  std::vector<std::string> skipped_;

  std::int64_t reads_ = 0;  ///< the thread's own

  std::thread thread_;
};

}  // namespace penstock
