#include "data/image_dataset.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/files.h"
#include "data/images.h"
#include "data/requests.h"
#include "data/resize.h"

namespace penstock {
namespace {

constexpr std::int64_t kUsualSize = 224;
constexpr std::int64_t kTestEvery = 10;

DataGeometry geometry_of(const DataRequest& request, const ImageList& list, const std::string& name) {
  DataGeometry geometry;
  geometry.channels = request.channels == 0 ? 3 : request.channels;
  geometry.height = request.image_size == 0 ? kUsualSize : request.image_size;
  geometry.width = geometry.height;
  geometry.classes = choose_classes(request, static_cast<std::int64_t>(list.class_names().size()), name);
  return geometry;
}

}  // namespace

ImageDataset::ImageDataset(const std::string& name, std::shared_ptr<const ImageList> list, ListShare share,
                           const DataRequest& request)
    : Dataset(name, geometry_of(request, *list, name)),
      list_(std::move(list)),
      share_(share),
      normaliser_(imagenet_statistics(), geometry().channels, name),
      decode_limit_bytes_(request.decode_limit_bytes) {
  refuse_pixels_and_volumes(request, name);
}

std::int64_t ImageDataset::size() const {
  const std::int64_t tests = list_->size() / kTestEvery;
  return share_ == ListShare::all           ? list_->size()
         : share_ == ListShare::every_tenth ? tests
                                            : list_->size() - tests;
}

std::int64_t ImageDataset::place_in_list(std::int64_t index) const {
  if (share_ == ListShare::every_tenth) return index * kTestEvery + kTestEvery - 1;
  if (share_ == ListShare::nine_tenths) return index + index / (kTestEvery - 1);
  return index;
}

void ImageDataset::read(std::int64_t index, float* image, std::int32_t* labels) const {
  require(index >= 0 && index < size(), "sample index out of range");
  const std::int64_t place = place_in_list(index);
  *labels = list_->label(place);
  const std::int64_t side = geometry().height;
  const auto rows = open_image(list_->path(place), {decode_limit_bytes_, side});
  const std::int64_t width = rows->width();
  const std::int64_t channels = rows->channels();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(width * channels));
  std::vector<float> floats(static_cast<std::size_t>(width * geometry().channels));
  RowResizer resizer(geometry().channels, rows->height(), width, side, side, image);
  for (std::int64_t y = 0; y < rows->height(); ++y) {
    rows->read_row(bytes.data());
    normaliser_.convert({bytes.data(), channels, channels, 1, width}, floats.data(), width);
    if (!resizer.add_row(floats.data())) break;
  }
}

std::int64_t ImageDataset::resident_bytes() const {
  // A shared list is counted once, with the training split.
  return share_ == ListShare::every_tenth ? 0 : list_->resident_bytes();
}

DataSplits open_image_folders(const std::string& folder, const DataRequest& request) {
  if (!is_folder(folder)) throw UserError(fmt::format("{} is not a folder", folder));
  const auto name = [&](const char* split) { return fmt::format("images:{} ({})", folder, split); };
  DataSplits splits;
  const std::string train_folder = folder + "/train";
  for (const char* test_name : {"/val", "/test"}) {
    const std::string test_folder = folder + test_name;
    if (!is_folder(train_folder) || !is_folder(test_folder)) continue;
    const auto train_list = std::make_shared<const ImageList>(train_folder);
    const auto test_list = std::make_shared<const ImageList>(test_folder, train_list->class_names());
    splits.train = std::make_unique<ImageDataset>(name("train"), train_list, ListShare::all, request);
    splits.test = std::make_unique<ImageDataset>(name("test"), test_list, ListShare::all, request);
    return splits;
  }
  const auto list = std::make_shared<const ImageList>(folder);
  const bool enough = list->size() >= kTestEvery;
  splits.train = std::make_unique<ImageDataset>(name("train"), list,
                                                enough ? ListShare::nine_tenths : ListShare::all, request);
  splits.test = std::make_unique<ImageDataset>(name("test"), list,
                                               enough ? ListShare::every_tenth : ListShare::all, request);
  if (!enough) {
    splits.warnings.push_back(
        fmt::format("{} has too few images to set some aside: evaluation uses the training images", folder));
  }
  return splits;
}

}  // namespace penstock
