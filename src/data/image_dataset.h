#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/image_list.h"
#include "data/normalise.h"

namespace penstock {

/// Which images of a list a data set takes.
enum class ListShare { all, nine_tenths, every_tenth };

/// JPEG and PNG files in a folder per class, decoded and resized as they are read; shares its list with the
/// other split where both come from one folder.
class ImageDataset final : public Dataset {
 public:
  ImageDataset(const std::string& name, std::shared_ptr<const ImageList> list, ListShare share,
               const DataRequest& request);

  std::int64_t size() const override;
  void read(std::int64_t index, float* image, std::int32_t* labels) const override;
  std::int64_t resident_bytes() const override;
  std::int64_t working_bytes() const override { return decode_limit_bytes_; }

 private:
  std::int64_t place_in_list(std::int64_t index) const;

  std::shared_ptr<const ImageList> list_;
  ListShare share_;
  ByteNormaliser normaliser_;
  std::int64_t decode_limit_bytes_;
};

/// `folder`/train and `folder`/val or test where there are both, otherwise every tenth image of `folder` is
/// for the test.
DataSplits open_image_folders(const std::string& folder, const DataRequest& request);

}  // namespace penstock
