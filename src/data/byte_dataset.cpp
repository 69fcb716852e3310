#include "data/byte_dataset.h"

#include <utility>

#include "data/requests.h"
#include "data/resize.h"

namespace penstock {
namespace {

DataGeometry geometry_of(const ByteImages& images, const DataRequest& request, std::int64_t classes) {
  DataGeometry geometry;
  geometry.channels = request.channels == 0 ? images.channels : request.channels;
  geometry.height = request.image_size == 0 ? images.height : request.image_size;
  geometry.width = request.image_size == 0 ? images.width : request.image_size;
  geometry.classes = classes;
  return geometry;
}

}  // namespace

ByteDataset::ByteDataset(ByteImages images, const DataRequest& request, std::int64_t classes)
    : Dataset(images.name, geometry_of(images, request, classes)),
      images_(std::move(images)),
      normaliser_(images_.statistics, geometry().channels, name()) {
  refuse_pixels_and_volumes(request, name());
}

void ByteDataset::read(std::int64_t index, float* image, std::int32_t* labels) const {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(images_.pixels.record_bytes()));
  images_.pixels.read(index, bytes.data());
  *labels = images_.labels[static_cast<std::size_t>(index)];
  const std::int64_t plane = images_.height * images_.width;
  if (geometry().height == images_.height && geometry().width == images_.width) {
    normaliser_.convert({bytes.data(), images_.channels, 1, plane, plane}, image, plane);
    return;
  }
  RowResizer resizer(geometry().channels, images_.height, images_.width, geometry().height, geometry().width,
                     image);
  std::vector<float> row(static_cast<std::size_t>(geometry().channels * images_.width));
  for (std::int64_t y = 0; y < images_.height; ++y) {
    const std::uint8_t* from = bytes.data() + y * images_.width;
    normaliser_.convert({from, images_.channels, 1, plane, images_.width}, row.data(), images_.width);
    resizer.add_row(row.data());
  }
}

std::int64_t ByteDataset::resident_bytes() const {
  return images_.pixels.resident_bytes() + static_cast<std::int64_t>(images_.labels.size());
}

std::int64_t ByteDataset::working_bytes() const {
  const std::int64_t longer = std::max(images_.height, images_.width);
  return images_.pixels.record_bytes() + geometry().channels * images_.width * 4 +
         RowResizer::working_bytes(geometry().channels, longer, geometry().height);
}

}  // namespace penstock
