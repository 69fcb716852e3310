#include "train/checkpoint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/safetensors.h"

namespace penstock::training {
namespace {

constexpr const char* kFormat = "penstock-checkpoint-1";
constexpr const char* kChecksums = "penstock.checksums";

std::string checkpoint_path(const std::string& dir) {
  return (std::filesystem::path(dir) / "checkpoint.safetensors").string();
}

bool is_weight(const StateEntry& entry) {
  return entry.role == ir::Role::parameter || entry.role == ir::Role::statistic;
}

/// Buffers of torch modules that Penstock has no use for.
bool is_ignored(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name == kChecksums;
}

std::uint64_t checksum(const StateEntry& entry, const float* values) {
  return XXH3_64bits(values, static_cast<std::size_t>(entry.size_bytes()));
}

template <typename Number>
Number number_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  Number value{};
  if (found != file.metadata().end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  throw UserError(fmt::format("checkpoint '{}' is damaged: no number '{}' in its header", file.path(), key));
}

SafetensorsFile open_checkpoint(const std::string& dir) {
  const std::string path = checkpoint_path(dir);
  if (!file_exists(path)) {
    throw UserError(fmt::format("--resume: there is no checkpoint in '{}' (no file {})", dir, path));
  }
  SafetensorsFile file = SafetensorsFile::open(path);
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != kFormat) {
    throw UserError(
        fmt::format("'{}' is not a Penstock checkpoint; to start from saved weights use --init", path));
  }
  return file;
}

/// Throws UserError unless the file has exactly the tensors of the state that `wanted` says, in their shapes.
template <typename Wanted>
void check_names(const SafetensorsFile& file, const StateIo& state, const Wanted& wanted,
                 bool refuse_others) {
  std::vector<std::string> missing;
  std::set<std::string> known;
  for (const StateEntry& entry : state.entries()) {
    known.insert(entry.name);
    if (!wanted(entry)) continue;
    const SafetensorsEntry* found = file.find(entry.name);
    if (found == nullptr) {
      missing.push_back(entry.name);
    } else if (found->shape != entry.shape.dims()) {
      throw UserError(fmt::format("'{}': tensor '{}' has the shape {}, this network needs {}", file.path(),
                                  entry.name, ir::Shape(found->shape).to_string(), entry.shape.to_string()));
    }
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("'{}': {} tensors of this network are missing, such as '{}'", file.path(),
                                missing.size(), missing.front()));
  }
  std::vector<std::string> extra;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (!known.contains(entry.name) && !is_ignored(entry.name)) extra.push_back(entry.name);
  }
  if (refuse_others && !extra.empty()) {
    throw UserError(
        fmt::format("'{}': {} tensors are not of this network, such as '{}'; is it of another model?",
                    file.path(), extra.size(), extra.front()));
  }
}

}  // namespace

void write_checkpoint(const std::string& dir, const CheckpointInfo& info, StateIo& state) {
  make_folders(dir);
  const std::map<std::string, std::string> metadata{{"format", kFormat},
                                                    {"model", info.model},
                                                    {"optimizer", info.optimizer},
                                                    {"data", info.data},
                                                    {"batch", std::to_string(info.batch)},
                                                    {"step", std::to_string(info.step)},
                                                    {"epoch", std::to_string(info.position.epoch)},
                                                    {"position", std::to_string(info.position.batch)},
                                                    {"seed", std::to_string(info.seed)}};
  // The checksums are known only once all tensors have been written, so they come last, as pairs of 32-bit
  // words.
  std::vector<SafetensorsSpec> specs;
  for (const StateEntry& entry : state.entries()) specs.push_back({entry.name, "F32", entry.shape.dims()});
  specs.push_back({kChecksums, "I32", {static_cast<std::int64_t>(2 * specs.size())}});
  SafetensorsWriter writer(checkpoint_path(dir), specs, metadata);
  std::vector<std::uint64_t> checksums;
  for (const StateEntry& entry : state.entries()) {
    state.read(entry, [&](const float* values) {
      writer.append(values, entry.size_bytes());
      checksums.push_back(checksum(entry, values));
    });
  }
  writer.append(checksums.data(), static_cast<std::int64_t>(checksums.size() * sizeof(std::uint64_t)));
  writer.commit();
}

CheckpointInfo read_checkpoint_info(const std::string& dir) {
  const SafetensorsFile file = open_checkpoint(dir);
  CheckpointInfo info;
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  info.model = text("model");
  info.optimizer = text("optimizer");
  info.data = text("data");
  info.batch = number_of<std::int64_t>(file, "batch");
  info.step = number_of<std::int64_t>(file, "step");
  info.position.epoch = number_of<std::int64_t>(file, "epoch");
  info.position.batch = number_of<std::int64_t>(file, "position");
  info.seed = number_of<std::uint64_t>(file, "seed");
  if (info.batch < 1 || info.step < 0 || info.position.epoch < 0 || info.position.batch < 0) {
    throw UserError(
        fmt::format("checkpoint '{}' is damaged: a number in its header is out of range", file.path()));
  }
  return info;
}

void read_checkpoint(const std::string& dir, StateIo& state, bool with_optimizer) {
  const SafetensorsFile file = open_checkpoint(dir);
  const auto wanted = [&](const StateEntry& entry) { return with_optimizer || is_weight(entry); };
  check_names(file, state, wanted, with_optimizer);

  // Checksums stand in the order of the file's tensors.
  const std::size_t count = file.tensors().size() - 1;
  const SafetensorsEntry* sums = file.find(kChecksums);
  if (sums == nullptr || sums->size_bytes != static_cast<std::int64_t>(count * sizeof(std::uint64_t))) {
    throw UserError(fmt::format("checkpoint '{}' is damaged: its checksums are missing", file.path()));
  }
  std::vector<std::uint64_t> values(count);
  file.read(kChecksums, values.data(), 0, sums->size_bytes);
  std::map<std::string, std::uint64_t> checksums;
  for (std::size_t i = 0; i < count; ++i) checksums[file.tensors()[i].name] = values[i];

  for (const StateEntry& entry : state.entries()) {
    if (!wanted(entry)) continue;
    state.write(entry, [&](float* to) {
      file.read(entry.name, to, 0, entry.size_bytes());
      if (checksum(entry, to) != checksums[entry.name]) {
        throw UserError(fmt::format("checkpoint '{}' is damaged: the checksum of '{}' is wrong", file.path(),
                                    entry.name));
      }
    });
  }
}

void save_weights(const std::string& path, StateIo& state) {
  std::vector<SafetensorsSpec> specs;
  for (const StateEntry& entry : state.entries()) {
    if (is_weight(entry)) specs.push_back({entry.name, "F32", entry.shape.dims()});
  }
  SafetensorsWriter writer(path, specs);
  for (const StateEntry& entry : state.entries()) {
    if (is_weight(entry))
      state.read(entry, [&](const float* values) { writer.append(values, entry.size_bytes()); });
  }
  writer.commit();
}

void load_weights(const std::string& path, StateIo& state) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check_names(file, state, is_weight, true);
  for (const StateEntry& entry : state.entries()) {
    if (!is_weight(entry)) continue;
    state.write(entry, [&](float* to) { file.read_float(entry.name, to, 0, entry.shape.elements()); });
  }
}

}  // namespace penstock::training
