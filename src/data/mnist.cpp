#include <fmt/format.h>

#include "base/files.h"
#include "data/byte_dataset.h"
#include "data/idx.h"
#include "data/requests.h"

namespace penstock {
namespace {

constexpr std::int64_t kUsualClasses = 10;
constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

std::string find_file(const std::string& folder, const std::string& base) {
  const std::string plain = folder + "/" + base;
  for (const std::string& path : {plain, plain + ".gz"}) {
    if (file_exists(path)) return path;
  }
  throw UserError(fmt::format("{} has neither {} nor {}.gz", folder, base, base));
}

std::unique_ptr<Dataset> open_split(const std::string& name, const std::string& folder,
                                    const std::string& prefix, const PixelStatistics& statistics,
                                    const DataRequest& request) {
  const std::string image_path = find_file(folder, prefix + "-images-idx3-ubyte");
  const std::string label_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  IdxImages images = open_idx_images(image_path, request.resident_limit_bytes);
  std::vector<std::uint8_t> labels = read_idx_labels(label_path, request.resident_limit_bytes);
  if (static_cast<std::int64_t>(labels.size()) != images.pixels.size()) {
    throw UserError(fmt::format("{} holds {} images, but {} holds {} labels", image_path,
                                images.pixels.size(), label_path, labels.size()));
  }
  const std::int64_t classes = request.classes == 0 ? kUsualClasses : request.classes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check_label(labels[i], classes, label_path, static_cast<std::int64_t>(i));
  }
  return std::make_unique<ByteDataset>(
      ByteImages{fmt::format("{} ({})", name, prefix == "train" ? "train" : "test"), 1, images.height,
                 images.width, statistics, std::move(images.pixels), std::move(labels)},
      request, classes);
}

}  // namespace

DataSplits open_mnist(const std::string& name, const std::string& folder, const PixelStatistics& statistics,
                      const DataRequest& request) {
  if (!is_folder(folder)) throw UserError(fmt::format("{} is not a folder", folder));
  DataSplits splits;
  splits.train = open_split(name, folder, "train", statistics, request);
  splits.test = open_split(name, folder, "t10k", statistics, request);
  if (splits.train->geometry() != splits.test->geometry()) {
    throw UserError(fmt::format(
        "the training and the test images in {} have different sizes: name one image size", folder));
  }
  return splits;
}

DataSplits open_fashion_mnist(const DataRequest& request) {
  if (!is_folder(kFashionMnistFolder)) {
    throw UserError(fmt::format(
        "fashion-mnist is not installed ({} is missing): install Debian's package dataset-fashion-mnist, "
        "or use mnist:DIR with the four files in DIR",
        kFashionMnistFolder));
  }
  return open_mnist("fashion-mnist", kFashionMnistFolder, fashion_mnist_statistics(), request);
}

}  // namespace penstock
