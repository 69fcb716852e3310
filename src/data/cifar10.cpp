#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "data/byte_dataset.h"
#include "data/requests.h"

namespace penstock {
namespace {

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kImageBytes = kChannels * kSide * kSide;
/// One byte of label before each image.
constexpr std::int64_t kRecordBytes = kImageBytes + 1;
/// Records read in one go when the labels are collected.
constexpr std::int64_t kAtOnce = 256;

void append_labels(const InputFile& file, std::vector<std::uint8_t>& labels) {
  const std::int64_t count = file.size_bytes() / kRecordBytes;
  if (count == 0 || count * kRecordBytes != file.size_bytes()) {
    throw UserError(fmt::format("{} is cut short or not of CIFAR-10: {} bytes are no multiple of {}",
                                file.path(), file.size_bytes(), kRecordBytes));
  }
  std::vector<std::uint8_t> records(static_cast<std::size_t>(kAtOnce * kRecordBytes));
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    const std::int64_t here = std::min(kAtOnce, count - first);
    file.read_at(first * kRecordBytes, records.data(), here * kRecordBytes);
    for (std::int64_t i = 0; i < here; ++i) {
      const std::uint8_t label = records[static_cast<std::size_t>(i * kRecordBytes)];
      check_label(label, kClasses, file.path(), first + i);
      labels.push_back(label);
    }
  }
}

std::unique_ptr<Dataset> open_split(const std::string& name, const std::vector<std::string>& paths,
                                    const DataRequest& request) {
  ByteStore pixels(kImageBytes);
  std::vector<std::uint8_t> labels;
  for (const std::string& path : paths) {
    InputFile file(path);
    append_labels(file, labels);
    const std::int64_t count = file.size_bytes() / kRecordBytes;
    pixels.add_file(std::move(file), 1, kRecordBytes, count);
  }
  const std::int64_t classes = choose_classes(request, kClasses, "cifar10");
  return std::make_unique<ByteDataset>(
      ByteImages{name, kChannels, kSide, kSide, cifar10_statistics(), std::move(pixels), std::move(labels)},
      request, classes);
}

}  // namespace

DataSplits open_cifar10(const std::string& folder, const DataRequest& request) {
  if (!is_folder(folder)) throw UserError(fmt::format("{} is not a folder", folder));
  // The archive unpacks into a folder of this name.
  const std::string inner = folder + "/cifar-10-batches-bin";
  const std::string where = is_folder(inner) ? inner : folder;
  std::vector<std::string> train_paths;
  for (int i = 1; i <= 5; ++i) train_paths.push_back(fmt::format("{}/data_batch_{}.bin", where, i));
  DataSplits splits;
  splits.train = open_split("cifar10 (train)", train_paths, request);
  splits.test = open_split("cifar10 (test)", {where + "/test_batch.bin"}, request);
  return splits;
}

}  // namespace penstock
