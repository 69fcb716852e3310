#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/checkpoint_file.h"
#include "data/checkpoint_format.h"

namespace penstock {
namespace {

std::string path_in(const std::string& folder) {
  return fmt::format("{}/{}", folder, kCheckpointName);
}

std::vector<SafetensorsSpec> specs_of(const std::vector<CheckpointTensor>& tensors) {
  std::vector<SafetensorsSpec> specs;
  for (const CheckpointTensor& tensor : tensors) specs.push_back({tensor.name, "F32", tensor.shape});
  // Checksums are known only once all values are written, so they come last.
  specs.push_back({kChecksumsTensor, "I32", {static_cast<std::int64_t>(2 * tensors.size())}});
  return specs;
}

std::map<std::string, std::string> metadata_of(const CheckpointHeader& header,
                                               const std::vector<CheckpointTensor>& tensors) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : header.facts) metadata[to_utf8(key)] = to_utf8(value);
  metadata["format"] = kCheckpointFormat;
  metadata["step"] = std::to_string(header.step);
  metadata["seed"] = std::to_string(header.seed);
  HeaderChecksum checksum;
  checksum.add_metadata(metadata);
  for (const SafetensorsSpec& spec : specs_of(tensors)) checksum.add_tensor(spec.name, spec.shape);
  metadata[kHeaderChecksum] = checksum.text();
  return metadata;
}

std::int64_t elements_of(const CheckpointTensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  return elements;
}

bool all_finite(const float* values, std::int64_t count) {
  constexpr std::uint32_t kExponent = 0x7f800000U;
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    others += (std::bit_cast<std::uint32_t>(values[i]) & kExponent) == kExponent ? 1 : 0;
  }
  return others == 0;
}

const std::string& made(const std::string& folder) {
  make_folders(folder);
  return folder;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, const CheckpointHeader& header,
                                   const std::vector<CheckpointTensor>& tensors, int keep)
    : folder_(std::move(folder)),
      step_(header.step),
      keep_(keep),
      tensors_(tensors),
      writer_(path_in(made(folder_)), specs_of(tensors), metadata_of(header, tensors)) {
  require(keep >= 1, "at least one checkpoint is kept");
  checksums_.reserve(tensors_.size());
}

void CheckpointWriter::append(const float* values) {
  require(checksums_.size() < tensors_.size(), "more tensors than the checkpoint has");
  const CheckpointTensor& tensor = tensors_[checksums_.size()];
  const std::int64_t count = elements_of(tensor);
  if (!all_finite(values, count)) {
    throw RunError(fmt::format(
        "training has diverged: after step {} '{}' holds NaN or infinity, so no checkpoint is written{}; a "
        "smaller learning rate or a schedule with warm-up may help",
        step_, tensor.name,
        file_exists(path_in(folder_)) ? fmt::format(" and the last one in '{}' stays", folder_) : ""));
  }
  checksums_.push_back(values_checksum(values, count * 4));
  writer_.append(values, count * 4);
}

void CheckpointWriter::commit() {
  require(checksums_.size() == tensors_.size(), "fewer tensors than the checkpoint has");
  writer_.append(checksums_.data(), static_cast<std::int64_t>(checksums_.size() * sizeof(std::uint64_t)));
  writer_.sync();
  if (keep_ > 1) keep_current();
  writer_.commit();
  if (keep_ > 1) remove_oldest();
}

void CheckpointWriter::keep_current() const {
  const std::string current = path_in(folder_);
  if (!file_exists(current)) return;
  std::int64_t step = 0;
  try {
    step = CheckpointReader::open(current).header().step;
  } catch (const UserError&) {
    return;  // Nobody could go on from it.
  }
  if (step == step_) return;
  const std::string kept = fmt::format("{}/checkpoint-{}.safetensors", folder_, step);
  files().remove(kept);
  int result = uninterrupted([&] { return files().link(current, kept); });
  const bool has_no_links =
      result == -EPERM || result == -EOPNOTSUPP || result == -ENOSYS || result == -EMLINK;
  // There is no checkpoint.safetensors until the new one gets its name; CheckpointReader takes this one then.
  if (has_no_links) result = uninterrupted([&] { return files().rename(current, kept); });
  if (result != 0) throw_file_error(fmt::format("cannot keep '{}' as '{}'", current, kept), result);
}

void CheckpointWriter::remove_oldest() const {
  const std::map<std::int64_t, std::string> earlier = earlier_checkpoints(folder_);
  // What is ahead of this one is of another run, and not for this one to remove.
  int left = keep_ - 1;
  for (auto at = std::make_reverse_iterator(earlier.lower_bound(step_)); at != earlier.rend(); ++at) {
    if (left-- <= 0) files().remove(at->second);
  }
}

}  // namespace penstock
