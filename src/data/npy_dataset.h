#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "data/dataset.h"
#include "data/npy.h"

namespace penstock {

/// Images and labels of two .npy files, taken as they are and read from disk sample by sample. One label per
/// image is kept in memory, labels per pixel are read with their image.
class NpyDataset final : public Dataset {
 public:
  /// float32 [N, C, H, W] or [N, C, D, H, W]; int64 [N], [N, H, W] or [N, D, H, W].
  NpyDataset(const std::string& name, const std::string& image_path, const std::string& label_path,
             const DataRequest& request);

  std::int64_t size() const override { return files_.images.shape[0]; }
  void read(std::int64_t index, float* image, std::int32_t* labels) const override;
  std::int64_t resident_bytes() const override { return static_cast<std::int64_t>(labels_.size()) * 4; }
  std::int64_t working_bytes() const override;

 private:
  /// Both files, open and checked against each other and the request.
  struct Files {
    Files(const std::string& image_path, const std::string& label_path, const DataRequest& request);
    InputFile image_file;
    InputFile label_file;
    NpyHeader images;
    NpyHeader labels;
  };
  NpyDataset(const std::string& name, Files files, const DataRequest& request);
  static DataGeometry geometry_of(const Files& files, const DataRequest& request);
  /// The largest label, all of them checked not to be negative.
  static std::int64_t largest_label(const Files& files);

  void read_resized(std::int64_t index, float* image) const;
  void read_pixel_labels(std::int64_t index, std::int32_t* labels) const;

  Files files_;
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  std::vector<std::int32_t> labels_;
};

/// `names`: IMAGES,LABELS or IMAGES,LABELS,TEST_IMAGES,TEST_LABELS.
DataSplits open_npy(const std::string& names, const DataRequest& request);

}  // namespace penstock
