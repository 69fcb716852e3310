#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "onnx/model.h"
#include "onnx/onnx_import.h"

namespace penstock::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkElements = 16 * 1024;

/// A part of a file that other weights go to.
struct Patch {
  Range range;
  const TensorInfo* tensor = nullptr;
  std::int64_t first = 0;  ///< element that the range begins with
};

/// Copies `from` to `to` with other bytes where the patches say.
class PatchedCopy {
 public:
  PatchedCopy(const std::string& from, const std::string& to, std::vector<Patch> patches,
              const ReadWeights& read)
      : from_(from), to_(to), patches_(std::move(patches)), read_(read) {
    std::sort(patches_.begin(), patches_.end(),
              [](const Patch& a, const Patch& b) { return a.range.begin < b.range.begin; });
  }

  void run() {
    std::int64_t at = 0;
    for (const Patch& patch : patches_) {
      // Two tensors may share their data; the first one's weights are taken.
      if (patch.range.begin < at) continue;
      copy({at, patch.range.begin});
      write(patch);
      at = patch.range.end;
    }
    copy({at, from_.size_bytes()});
    to_.commit();
  }

 private:
  void copy(const Range& range) {
    std::vector<char> bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(range.size(), 0, 1 << 18)));
    for (std::int64_t at = range.begin; at < range.end;) {
      const std::int64_t now = std::min(range.end - at, static_cast<std::int64_t>(bytes.size()));
      from_.read_at(at, bytes.data(), now);
      to_.write(bytes.data(), now);
      at += now;
    }
  }

  void write(const Patch& patch) {
    const TensorInfo& tensor = *patch.tensor;
    const std::int64_t width = tensor.part_element_bytes;
    const std::int64_t count = patch.range.size() / width;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::min(count, kChunkElements) * width));
    const bool there = read_(tensor.name, [&](std::span<const float> values) {
      require(static_cast<std::int64_t>(values.size()) >= patch.first + count,
              "onnx: a parameter has become smaller");
      for (std::int64_t at = 0; at < count; at += kChunkElements) {
        const std::int64_t now = std::min(kChunkElements, count - at);
        for (std::int64_t i = 0; i < now; ++i) {
          const float value = values[static_cast<std::size_t>(patch.first + at + i)];
          encode_float(tensor.type, value, bytes.data() + i * width);
        }
        to_.write(bytes.data(), now * width);
      }
    });
    require(there, "onnx: a parameter is gone");
  }

  InputFile from_;
  AtomicFile to_;
  std::vector<Patch> patches_;
  const ReadWeights& read_;
};

/// Where a model is and where it goes.
struct Folders {
  fs::path in, out;
};

/// UserError if files beside the model would be written over themselves.
Folders folders_of(const std::string& path_in, const std::string& path_out, bool has_files_beside) {
  std::error_code error;
  Folders folders;
  folders.in = fs::canonical(fs::absolute(path_in).parent_path());
  folders.out = fs::weakly_canonical(fs::absolute(path_out).parent_path(), error);
  if (has_files_beside && (error || folders.in == folders.out)) {
    throw UserError(
        fmt::format("{} keeps weights in files beside it, which {} would share; save into another folder",
                    path_in, path_out));
  }
  return folders;
}

}  // namespace

void check_save(const std::string& path_in, const std::string& path_out) {
  const Model model = read_model(path_in);
  const bool beside = std::any_of(model.initializers.begin(), model.initializers.end(),
                                  [](const TensorInfo& tensor) { return !tensor.external.empty(); });
  folders_of(path_in, path_out, beside);
}

void save(const std::string& path_in, const std::string& path_out, const ReadWeights& read) {
  const Model model = read_model(path_in);
  std::map<std::string, std::vector<Patch>> files;  // by path; empty: the model's own
  files[""];
  for (const TensorInfo& tensor : model.initializers) {
    if (!tensor.external.empty()) files[tensor.external];
    if (!is_floating(tensor.type) || tensor.elements == 0 || !read(tensor.name, nullptr)) continue;
    std::int64_t first = 0;
    for (const Range& part : tensor.parts) {
      files[tensor.external].push_back({part, &tensor, first});
      first += part.size() / tensor.part_element_bytes;
    }
  }
  const Folders folders = folders_of(path_in, path_out, files.size() > 1);
  // The model comes last: once it is there, all that it needs is.
  for (auto& [external, patches] : files) {
    if (external.empty()) continue;
    const fs::path target = folders.out / fs::path(external).lexically_relative(folders.in);
    std::error_code ignored;  // what cannot be made cannot be written to either, which says more
    fs::create_directories(target.parent_path(), ignored);
    PatchedCopy(external, target.string(), std::move(patches), read).run();
  }
  PatchedCopy(path_in, path_out, std::move(files[""]), read).run();
}

}  // namespace penstock::onnx
