#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {

/// One sample cannot be used although its data set can: an image that does not decode. The loader names it,
/// takes the next one instead and counts it. Where the disk fails it is another error, which ends the run.
class SampleError : public UserError {
 public:
  using UserError::UserError;
};

/// What one sample of a data set looks like. An image is plain [C, H, W], or [C, D, H, W] where depth is not
/// 0.
struct DataGeometry {
  std::int64_t channels = 0;
  std::int64_t depth = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
  bool per_pixel_labels = false;

  bool volumetric() const { return depth != 0; }
  std::int64_t pixels() const { return (depth == 0 ? 1 : depth) * height * width; }
  std::int64_t image_values() const { return channels * pixels(); }
  std::int64_t label_values() const { return per_pixel_labels ? pixels() : 1; }
  bool operator==(const DataGeometry&) const = default;
};

/// A finite list of labelled images, all of one geometry. Immutable once open: any thread may read at any
/// time.
class Dataset {
 public:
  Dataset(std::string name, const DataGeometry& geometry) : name_(std::move(name)), geometry_(geometry) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  /// For messages, say "fashion-mnist (train)".
  const std::string& name() const { return name_; }
  const DataGeometry& geometry() const { return geometry_; }

  virtual std::int64_t size() const = 0;

  /// Writes geometry().image_values() floats and geometry().label_values() labels, each in 0 .. classes-1.
  /// Throws SampleError if this sample alone is unusable.
  virtual void read(std::int64_t index, float* image, std::int32_t* labels) const = 0;

  /// Memory held for as long as the data set is open.
  virtual std::int64_t resident_bytes() const = 0;

  /// The most that one call of read() takes for its own use while it runs.
  virtual std::int64_t working_bytes() const = 0;

 private:
  std::string name_;
  DataGeometry geometry_;
};

/// What the caller wants of a data source. A size of 0 means: as the data has it.
struct DataRequest {
  /// fashion-mnist, mnist:DIR, cifar10:DIR, images:DIR, npy:IMAGES.npy,LABELS.npy[,TEST_IMAGES,TEST_LABELS]
  /// or synthetic.
  std::string source;
  std::int64_t channels = 0;
  /// Height and width.
  std::int64_t image_size = 0;
  /// Used only where volumetric is set; 0 means image_size for synthetic data.
  std::int64_t depth = 0;
  std::int64_t classes = 0;
  /// Keys synthetic data.
  std::uint64_t seed = 0;
  bool per_pixel_labels = false;
  bool volumetric = false;
  /// An image whose decoding takes more memory than this is skipped like one that does not decode.
  std::int64_t decode_limit_bytes = 64 * kMiB;
  /// Files that have to be in memory as a whole (gzipped ones) are refused if they are larger than this.
  std::int64_t resident_limit_bytes = kGiB;
};

/// Both splits have the same geometry and are never null. Where the source has no test samples, `test` holds
/// the training samples and `warnings` says so.
struct DataSplits {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::vector<std::string> warnings;
};

/// Opens a data source. Throws UserError with one line that names the file and what is wrong with it.
DataSplits open_data(const DataRequest& request);

}  // namespace penstock
