#include "data/dataset.h"
#include "data/idx.h"
#include "data/tokens.h"
#include "fuzz/memory_folder.h"
#include "fuzz/targets.h"

namespace penstock::fuzz {
namespace {

constexpr std::int64_t kMostValues = 1 << 22;

void read_ends(const Dataset& data) {
  const DataGeometry& geometry = data.geometry();
  if (geometry.image_values() > kMostValues || geometry.label_values() > kMostValues) return;
  std::vector<float> image(static_cast<std::size_t>(geometry.image_values()));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(geometry.label_values()));
  for (const std::int64_t index : {std::int64_t{0}, data.size() - 1}) {
    data.read(index, image.data(), labels.data());
    for (const std::int32_t label : labels) require(label >= 0 && label < geometry.classes, "a label");
  }
}

/// Two files in one input: the first byte times 8 is the size of the first.
std::pair<std::string, std::string> split(const std::string& input) {
  if (input.empty()) return {};
  const std::size_t at = std::min<std::size_t>(input.size() - 1, static_cast<unsigned char>(input[0]) * 8U);
  return {input.substr(1, at), input.substr(1 + at)};
}

}  // namespace

void read_idx(const std::string& input) {
  constexpr std::int64_t kLimitBytes = 4 << 20;
  MemoryFolder folder;
  folder.put("a", input);
  const bool images = input.size() > 3 && (input[3] == 3 || input[0] == 0x1f);
  read_all(folder, [&] {
    if (!images) {
      read_idx_labels("a", kLimitBytes);
      return;
    }
    const IdxImages read = open_idx_images("a", kLimitBytes);
    if (read.pixels.record_bytes() > kMostValues) return;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(read.pixels.record_bytes()));
    read.pixels.read(0, pixels.data());
    read.pixels.read(read.pixels.size() - 1, pixels.data());
  });
}

void read_cifar10(const std::string& input) {
  MemoryFolder folder;
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    folder.put(std::string("c/") + name + ".bin", input);
  }
  DataRequest request;
  request.source = "cifar10:c";
  read_all(folder, [&] {
    const DataSplits splits = open_data(request);
    read_ends(*splits.train);
    read_ends(*splits.test);
  });
}

void read_npy(const std::string& input) {
  MemoryFolder folder;
  const auto [images, labels] = split(input);
  folder.put("x", images);
  folder.put("y", labels);
  DataRequest request;
  request.source = "npy:x,y";
  for (const bool per_pixel : {false, true}) {
    request.per_pixel_labels = per_pixel;
    request.image_size = per_pixel ? 0 : 3;
    try {
      read_all(folder, [&] { read_ends(*open_data(request).train); });
    } catch (const UserError&) {
      if (per_pixel) throw;
    }
  }
}

void read_tokens(const std::string& input) {
  MemoryFolder folder;
  folder.put("a.npy", input);
  folder.put("a", input);
  for (const char* source : {"tokens:a.npy", "tokens:a", "text:a"}) {
    TokenRequest request;
    request.source = source;
    request.sequence = 4;
    request.vocabulary = 300;
    try {
      read_all(folder, [&] {
        const TokenSplits splits = open_tokens(request);
        std::int32_t tokens[4];
        std::int32_t labels[4];
        for (const TokenDataset* data : {splits.train.get(), splits.validation.get()}) {
          data->read(0, tokens, labels);
          data->read(data->size() - 1, tokens, labels);
        }
      });
    } catch (const UserError&) {
      if (source[0] == 't' && source[1] == 'e') throw;
    }
  }
}

}  // namespace penstock::fuzz
