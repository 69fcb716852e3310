#include "models/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace penstock::models {

namespace {

constexpr std::int64_t kLargest = 1 << 24;  ///< of any option: products stay far from overflow

std::int64_t checked(const char* what, std::int64_t value, std::int64_t smallest) {
  if (value < smallest || value > kLargest) {
    throw UserError(fmt::format("{} {} is out of range; use {} to {}", what, value, smallest, kLargest));
  }
  return value;
}

std::int64_t chosen(std::int64_t option, std::int64_t standard) {
  return option == 0 ? standard : option;
}

}  // namespace

Instance::Instance(const ModelInfo& info, const ModelOptions& options)
    : name(info.name),
      classes(checked("the number of classes", chosen(options.classes, info.classes), 2)),
      per_pixel(info.per_pixel),
      width(options.width),
      dropout(options.dropout) {
  const std::int64_t edge = checked("image size", chosen(options.image_size, info.image_size), 1);
  std::vector<std::int64_t> dims{
      checked("batch", options.batch, 1),
      checked("the number of channels", chosen(options.channels, info.channels), 1)};
  dims.insert(dims.end(), info.volumetric ? 3 : 2, edge);
  images = std::move(dims);
}

std::int64_t Instance::channels(std::int64_t full) const {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(full) * width));
}

Instance::Begun Instance::begin() const {
  Begun begun{NetworkBuilder(name), {}, {}};
  begun.images = begun.net.input("images", DType::f32, images);
  Extents labels{images[0]};
  if (per_pixel) labels.insert(labels.end(), images.begin() + 2, images.end());
  begun.labels = begun.net.input("labels", DType::s32, labels);
  return begun;
}

Init he_normal(std::int64_t fan) {
  return Init::normal(static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan))));
}

}  // namespace penstock::models
