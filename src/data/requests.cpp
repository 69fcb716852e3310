#include "data/requests.h"

#include <fmt/format.h>

namespace penstock {

void refuse_pixels_and_volumes(const DataRequest& request, const std::string& name) {
  if (request.volumetric) {
    throw UserError(
        fmt::format("{} holds flat images, but the model needs volumes: use npy: or synthetic", name));
  }
  if (request.per_pixel_labels) {
    throw UserError(fmt::format(
        "{} has one label per image, but the model needs one per pixel: use npy: or synthetic", name));
  }
}

std::int64_t choose_classes(const DataRequest& request, std::int64_t own, const std::string& name) {
  if (request.classes == 0) return own;
  if (request.classes < own) {
    throw UserError(fmt::format("{} has {} classes, more than the {} asked for: ask for {} classes", name,
                                own, request.classes, own));
  }
  return request.classes;
}

void check_label(std::int64_t label, std::int64_t classes, const std::string& where, std::int64_t index) {
  if (label >= 0 && label < classes) return;
  throw UserError(
      fmt::format("label {} of sample {} in {} is out of range: with {} classes labels are 0 to {}", label,
                  index, where, classes, classes - 1));
}

}  // namespace penstock
