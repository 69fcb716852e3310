#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace penstock {

/// Images drawn from a counter: sample `index` is a pure function of (seed, index). Zero mean and unit
/// variance; a low wave that belongs to the class (or, with labels per pixel, a level that belongs to the
/// pixel's class) lies below the noise, so that a network can learn it.
class SyntheticDataset final : public Dataset {
 public:
  /// Samples first_index .. first_index + size - 1 of the endless series.
  SyntheticDataset(const std::string& name, const DataGeometry& geometry, std::uint64_t seed,
                   std::uint64_t first_index, std::int64_t size);

  std::int64_t size() const override { return size_; }
  void read(std::int64_t index, float* image, std::int32_t* labels) const override;
  std::int64_t resident_bytes() const override { return 0; }
  std::int64_t working_bytes() const override;

 private:
  void add_noise(std::uint64_t sample, float* image) const;
  void add_wave(std::int32_t label, float* image) const;
  void add_regions(std::uint64_t sample, float* image, std::int32_t* labels) const;

  std::uint64_t seed_;
  std::uint64_t first_index_;
  std::int64_t size_;
};

DataSplits open_synthetic(const DataRequest& request);

}  // namespace penstock
