#include <fmt/format.h>

#include <string>

#include "data/byte_dataset.h"
#include "data/dataset.h"
#include "data/image_dataset.h"
#include "data/npy_dataset.h"
#include "data/synthetic.h"

namespace penstock {

DataSplits open_data(const DataRequest& request) {
  require(request.channels >= 0 && request.image_size >= 0 && request.depth >= 0 && request.classes >= 0,
          "sizes of a data request are not negative");
  const std::size_t colon = request.source.find(':');
  const std::string kind = request.source.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : request.source.substr(colon + 1);
  const bool has_place = !place.empty();
  if (request.source == "fashion-mnist") return open_fashion_mnist(request);
  if (request.source == "synthetic") return open_synthetic(request);
  if (kind == "mnist" && has_place) return open_mnist(request.source, place, mnist_statistics(), request);
  if (kind == "cifar10" && has_place) return open_cifar10(place, request);
  if (kind == "images" && has_place) return open_image_folders(place, request);
  if (kind == "npy" && has_place) return open_npy(place, request);
  throw UserError(
      fmt::format("unknown data '{}': use fashion-mnist, mnist:DIR, cifar10:DIR, images:DIR, "
                  "npy:IMAGES.npy,LABELS.npy or synthetic",
                  request.source));
}

}  // namespace penstock
