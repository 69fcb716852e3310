#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/checkpoint_file.h"
#include "data/checkpoint_format.h"

namespace penstock {
namespace {

constexpr std::string_view kEarlierBegin = "checkpoint-";
constexpr std::string_view kEarlierEnd = ".safetensors";

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// "; earlier ones are there: a, b", or nothing.
std::string tell_earlier(const std::string& folder) {
  std::string text;
  for (const auto& [step, path] : earlier_checkpoints(folder)) {
    text += fmt::format("{} {}", text.empty() ? "; there are earlier ones:" : ",", path);
  }
  return text;
}

std::string choose_file(const std::string& folder_or_file) {
  if (is_regular_file(folder_or_file)) return folder_or_file;
  std::string newest = fmt::format("{}/{}", folder_or_file, kCheckpointName);
  if (file_exists(newest)) return newest;
  const std::map<std::int64_t, std::string> earlier = earlier_checkpoints(folder_or_file);
  if (!earlier.empty()) return earlier.rbegin()->second;
  throw UserError(fmt::format("there is no checkpoint in '{}' (no file {})", folder_or_file, newest));
}

}  // namespace

std::map<std::int64_t, std::string> earlier_checkpoints(const std::string& folder) {
  std::vector<std::string> names;
  files().list(folder, names);
  std::map<std::int64_t, std::string> found;
  for (const std::string& name : names) {
    std::string_view number = name;
    if (!number.starts_with(kEarlierBegin) || !number.ends_with(kEarlierEnd)) continue;
    number.remove_prefix(kEarlierBegin.size());
    number.remove_suffix(std::min(number.size(), kEarlierEnd.size()));
    std::int64_t step = -1;
    if (parse_number(number, step) && step >= 0) found[step] = fmt::format("{}/{}", folder, name);
  }
  return found;
}

CheckpointReader CheckpointReader::open(const std::string& folder_or_file) {
  CheckpointReader reader(SafetensorsFile::open(choose_file(folder_or_file)));
  reader.read_header();
  reader.read_checksums();
  return reader;
}

void CheckpointReader::damaged(const std::string& why) const {
  throw UserError(
      fmt::format("checkpoint '{}' is damaged: {}{}", path(), why, tell_earlier(folder_of(path()))));
}

void CheckpointReader::read_header() {
  const std::map<std::string, std::string>& metadata = file_.metadata();
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  const std::string format = text("format");
  if (format != kCheckpointFormat && format != kFirstCheckpointFormat) {
    throw UserError(
        format.starts_with("penstock-checkpoint-")
            ? fmt::format("checkpoint '{}' is of another version ({}); this one reads {}", path(),
                          printable(format), kCheckpointFormat)
            : fmt::format("'{}' is not a Penstock checkpoint; saved weights are loaded, not resumed",
                          path()));
  }
  if (format == kCheckpointFormat) {
    HeaderChecksum checksum;
    checksum.add_metadata(metadata);
    for (const SafetensorsEntry& entry : file_.tensors()) checksum.add_tensor(entry.name, entry.shape);
    if (checksum.text() != text(kHeaderChecksum)) damaged("the checksum of its header is wrong");
  }
  if (!parse_number(text("step"), header_.step) || header_.step < 0 ||
      !parse_number(text("seed"), header_.seed)) {
    damaged("its step or seed is no number");
  }
  header_.facts = metadata;
  for (const char* key : {"format", "step", "seed", kHeaderChecksum}) header_.facts.erase(key);
}

void CheckpointReader::read_checksums() {
  const SafetensorsEntry* sums = file_.find(kChecksumsTensor);
  const std::size_t count = file_.tensors().empty() ? 0 : tensor_count();
  if (sums == nullptr || sums != &file_.tensors().back() ||
      sums->size_bytes != static_cast<std::int64_t>(count * sizeof(std::uint64_t))) {
    damaged("its checksums are missing");
  }
  checksums_.resize(count);
  file_.read(kChecksumsTensor, checksums_.data(), 0, sums->size_bytes);
}

const SafetensorsEntry* CheckpointReader::find(const std::string& name) const {
  return name == kChecksumsTensor ? nullptr : file_.find(name);
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensor_count(); ++i) names.push_back(file_.tensors()[i].name);
  return names;
}

void CheckpointReader::read(const SafetensorsEntry& tensor, float* to) const {
  if (tensor.type != "F32") damaged(fmt::format("'{}' is not of float32", printable(tensor.name)));
  file_.read(tensor.name, to, 0, tensor.size_bytes);
  const auto place = static_cast<std::size_t>(&tensor - file_.tensors().data());
  if (values_checksum(to, tensor.size_bytes) != checksums_.at(place)) {
    damaged(fmt::format("the checksum of '{}' is wrong", printable(tensor.name)));
  }
}

std::vector<std::string> changed_facts(const std::map<std::string, std::string>& before,
                                       const std::map<std::string, std::string>& now) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : now) {
    const auto found = before.find(to_utf8(key));
    if (found == before.end() || found->second == to_utf8(value)) continue;
    lines.push_back(
        fmt::format("{}: {} before, {} now", printable(key), printable(found->second), printable(value)));
  }
  return lines;
}

}  // namespace penstock
