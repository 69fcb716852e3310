#include "data/npy_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "data/requests.h"
#include "data/resize.h"

namespace penstock {
namespace {

constexpr std::int64_t kLabelBytes = 8;

/// Calls `use(position, label)` for labels [first, first + count) of the file.
template <typename Use>
void for_each_label(const InputFile& file, const NpyHeader& header, std::int64_t first, std::int64_t count,
                    Use use) {
  std::array<std::int64_t, 1024> piece;
  while (count > 0) {
    const std::int64_t here = std::min<std::int64_t>(count, piece.size());
    file.read_at(header.data_offset_bytes + first * kLabelBytes, piece.data(), here * kLabelBytes);
    for (std::int64_t i = 0; i < here; ++i) use(first + i, piece[static_cast<std::size_t>(i)]);
    first += here;
    count -= here;
  }
}

}  // namespace

NpyDataset::Files::Files(const std::string& image_path, const std::string& label_path,
                         const DataRequest& request)
    : image_file(image_path),
      label_file(label_path),
      images(read_npy_header(image_file)),
      labels(read_npy_header(label_file)) {
  check_npy(image_file, images, "<f4", 4, "float32");
  check_npy(label_file, labels, "<i8", kLabelBytes, "int64");
  const std::size_t dimensions = request.volumetric ? 5 : 4;
  if (images.shape.size() != dimensions || images.elements() == 0) {
    throw UserError(fmt::format("{} has shape {}, but the model needs images [N, C, {}H, W]", image_path,
                                format_shape(images.shape), request.volumetric ? "D, " : ""));
  }
  std::vector<std::int64_t> wanted{images.shape[0]};
  if (request.per_pixel_labels) wanted.insert(wanted.end(), images.shape.begin() + 2, images.shape.end());
  if (labels.shape != wanted) {
    throw UserError(fmt::format("{} has shape {}, but with images {} the model needs labels {}", label_path,
                                format_shape(labels.shape), format_shape(images.shape),
                                format_shape(wanted)));
  }
}

std::int64_t NpyDataset::largest_label(const Files& files) {
  std::int64_t largest = 0;
  for_each_label(files.label_file, files.labels, 0, files.labels.elements(),
                 [&](std::int64_t at, std::int64_t label) {
                   check_label(label, std::int64_t{1} << 31, files.label_file.path(), at);
                   largest = std::max(largest, label);
                 });
  return largest;
}

DataGeometry NpyDataset::geometry_of(const Files& files, const DataRequest& request) {
  const auto& shape = files.images.shape;
  const std::int64_t height = shape[shape.size() - 2];
  const std::int64_t width = shape[shape.size() - 1];
  DataGeometry geometry;
  geometry.channels = request.channels == 0 ? shape[1] : request.channels;
  geometry.depth = request.volumetric ? shape[2] : 0;
  geometry.height = request.image_size == 0 ? height : request.image_size;
  geometry.width = request.image_size == 0 ? width : request.image_size;
  geometry.per_pixel_labels = request.per_pixel_labels;
  geometry.classes = request.classes == 0 ? largest_label(files) + 1 : request.classes;

  const std::string& path = files.image_file.path();
  if (geometry.channels != shape[1] && shape[1] != 1) {
    throw UserError(
        fmt::format("{} has {} channels and cannot be read as {}", path, shape[1], geometry.channels));
  }
  const bool resized = geometry.height != height || geometry.width != width;
  if (resized && (request.volumetric || request.per_pixel_labels)) {
    throw UserError(fmt::format("{} is {}x{} and cannot be resized to {}x{}: {} are taken as they are", path,
                                height, width, geometry.height, geometry.width,
                                request.volumetric ? "volumes" : "images labelled by pixel"));
  }
  if (request.volumetric && request.depth != 0 && request.depth != geometry.depth) {
    throw UserError(
        fmt::format("{} has depth {}, but {} was asked for", path, geometry.depth, request.depth));
  }
  return geometry;
}

NpyDataset::NpyDataset(const std::string& name, const std::string& image_path, const std::string& label_path,
                       const DataRequest& request)
    : NpyDataset(name, Files(image_path, label_path, request), request) {}

NpyDataset::NpyDataset(const std::string& name, Files files, const DataRequest& request)
    : Dataset(name, geometry_of(files, request)),
      files_(std::move(files)),
      channels_(files_.images.shape[1]),
      height_(files_.images.shape[files_.images.shape.size() - 2]),
      width_(files_.images.shape.back()) {
  if (request.per_pixel_labels) return;
  labels_.reserve(static_cast<std::size_t>(size()));
  for_each_label(files_.label_file, files_.labels, 0, size(), [&](std::int64_t at, std::int64_t label) {
    check_label(label, geometry().classes, files_.label_file.path(), at);
    labels_.push_back(static_cast<std::int32_t>(label));
  });
}

void NpyDataset::read(std::int64_t index, float* image, std::int32_t* labels) const {
  require(index >= 0 && index < size(), "sample index out of range");
  if (geometry().height == height_ && geometry().width == width_) {
    const std::int64_t plane_values = geometry().pixels();
    const std::int64_t own_bytes = channels_ * plane_values * 4;
    files_.image_file.read_at(files_.images.data_offset_bytes + index * own_bytes, image, own_bytes);
    for (std::int64_t c = channels_; c < geometry().channels; ++c) {
      std::copy(image, image + plane_values, image + c * plane_values);
    }
  } else {
    read_resized(index, image);
  }
  if (geometry().per_pixel_labels) {
    read_pixel_labels(index, labels);
  } else {
    *labels = labels_[static_cast<std::size_t>(index)];
  }
}

void NpyDataset::read_resized(std::int64_t index, float* image) const {
  const std::int64_t plane_values = geometry().height * geometry().width;
  const std::int64_t row_bytes = width_ * 4;
  std::vector<float> row(static_cast<std::size_t>(width_));
  for (std::int64_t c = 0; c < geometry().channels; ++c) {
    if (c >= channels_) {
      std::copy(image, image + plane_values, image + c * plane_values);
      continue;
    }
    RowResizer resizer(1, height_, width_, geometry().height, geometry().width, image + c * plane_values);
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::int64_t place = (index * channels_ + c) * height_ + y;
      files_.image_file.read_at(files_.images.data_offset_bytes + place * row_bytes, row.data(), row_bytes);
      resizer.add_row(row.data());
    }
  }
}

void NpyDataset::read_pixel_labels(std::int64_t index, std::int32_t* labels) const {
  const std::int64_t count = geometry().label_values();
  for_each_label(files_.label_file, files_.labels, index * count, count,
                 [&](std::int64_t at, std::int64_t label) {
                   check_label(label, geometry().classes, files_.label_file.path(), index);
                   labels[at - index * count] = static_cast<std::int32_t>(label);
                 });
}

std::int64_t NpyDataset::working_bytes() const {
  return width_ * 4 + RowResizer::working_bytes(1, std::max(height_, width_), geometry().height);
}

DataSplits open_npy(const std::string& names, const DataRequest& request) {
  std::vector<std::string> paths{""};
  for (const char c : names) {
    if (c == ',') {
      paths.emplace_back();
    } else {
      paths.back() += c;
    }
  }
  if ((paths.size() != 2 && paths.size() != 4) || std::find(paths.begin(), paths.end(), "") != paths.end()) {
    throw UserError(fmt::format(
        "npy:{} must be npy:IMAGES.npy,LABELS.npy, optionally with ,TEST_IMAGES.npy,TEST_LABELS.npy", names));
  }
  const auto name = [&](const char* split) { return fmt::format("npy:{} ({})", paths[0], split); };
  DataSplits splits;
  splits.train = std::make_unique<NpyDataset>(name("train"), paths[0], paths[1], request);
  DataRequest test_request = request;
  test_request.classes = splits.train->geometry().classes;
  const std::size_t test_at = paths.size() - 2;
  splits.test = std::make_unique<NpyDataset>(name("test"), paths[test_at], paths[test_at + 1], test_request);
  if (paths.size() == 2) {
    splits.warnings.emplace_back(
        "no test files are named (npy:IMAGES,LABELS,TEST_IMAGES,TEST_LABELS): evaluation uses the training "
        "images");
  }
  if (splits.train->geometry() != splits.test->geometry()) {
    throw UserError(fmt::format("{} and {} hold images of different sizes: name one image size", paths[0],
                                paths[test_at]));
  }
  return splits;
}

}  // namespace penstock
