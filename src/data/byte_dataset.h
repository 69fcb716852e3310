#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/byte_store.h"
#include "data/dataset.h"
#include "data/normalise.h"

namespace penstock {

/// The raw content of a data set of small byte images, [channels, height, width] each.
struct ByteImages {
  std::string name;
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
  PixelStatistics statistics;
  ByteStore pixels;
  std::vector<std::uint8_t> labels;
};

/// MNIST and the like: byte images normalised, and resized where the request says so, as they are read.
class ByteDataset final : public Dataset {
 public:
  /// Throws UserError if the request cannot be met; the labels have been checked already.
  ByteDataset(ByteImages images, const DataRequest& request, std::int64_t classes);

  std::int64_t size() const override { return images_.pixels.size(); }
  void read(std::int64_t index, float* image, std::int32_t* labels) const override;
  std::int64_t resident_bytes() const override;
  std::int64_t working_bytes() const override;

 private:
  ByteImages images_;
  ByteNormaliser normaliser_;
};

/// The four files of MNIST, gzipped or not, in `folder`.
DataSplits open_mnist(const std::string& name, const std::string& folder, const PixelStatistics& statistics,
                      const DataRequest& request);

/// Debian's package dataset-fashion-mnist.
DataSplits open_fashion_mnist(const DataRequest& request);

/// CIFAR-10's binary files: data_batch_1.bin to data_batch_5.bin and test_batch.bin.
DataSplits open_cifar10(const std::string& folder, const DataRequest& request);

}  // namespace penstock
