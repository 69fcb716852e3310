#include "data/weight_files.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/kept_json.h"
#include "base/text.h"
#include "base/text_file.h"

namespace penstock {
namespace {

constexpr int kDeepest = 8;
constexpr std::int64_t kLongestIndex = 16 * kMiB;
constexpr std::array kPrefixes{"transformer.", "model."};

/// The shard of each tensor.
std::map<std::string, std::string> read_index(const std::string& path) {
  const std::string text = read_file(path, kLongestIndex);
  if (nests_deeper_than(text, kDeepest)) throw UserError(path + " is nested too deeply for an index");
  const KeptJson<nlohmann::json> kept(nlohmann::json::parse(text, nullptr, false));
  const nlohmann::json& values = *kept;
  const bool sound = values.is_object() && values.contains("weight_map") && values["weight_map"].is_object();
  if (!sound) throw UserError(path + " is no index of shards: it has no weight_map");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : values["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().find('/') != std::string::npos) {
      throw UserError(fmt::format("{} names no file of its folder for tensor '{}'", path, printable(name)));
    }
    shards.emplace(name, shard.get<std::string>());
  }
  return shards;
}

}  // namespace

WeightFiles WeightFiles::open(const std::string& path) {
  WeightFiles weights(path);
  if (!is_folder(path)) {
    weights.add(path);
    return weights;
  }
  const std::string index = path + "/model.safetensors.index.json";
  const std::string whole = path + "/model.safetensors";
  if (file_exists(index)) {
    weights.add_shards(path, index);
  } else if (file_exists(whole)) {
    weights.add(whole);
  } else {
    throw UserError(fmt::format("'{}' has neither model.safetensors nor model.safetensors.index.json", path));
  }
  return weights;
}

void WeightFiles::add(const std::string& file) {
  files_.push_back(SafetensorsFile::open(file));
  for (const SafetensorsEntry& tensor : files_.back().tensors()) {
    if (!file_of_.emplace(tensor.name, files_.size() - 1).second) {
      throw UserError(fmt::format("'{}': tensor '{}' is in two shards", path_, printable(tensor.name)));
    }
  }
}

void WeightFiles::add_shards(const std::string& folder, const std::string& index) {
  const std::map<std::string, std::string> shards = read_index(index);
  std::set<std::string> files;
  for (const auto& [name, shard] : shards) files.insert(shard);
  for (const std::string& shard : files) {
    const std::string file = fmt::format("{}/{}", folder, shard);
    if (!file_exists(file)) {
      throw UserError(fmt::format("'{}' lacks the shard {}, one of {} that its index names", folder,
                                  printable(shard), files.size()));
    }
    add(file);
  }
  for (const auto& [name, shard] : shards) {
    const auto found = file_of_.find(name);
    if (found == file_of_.end() || files_[found->second].path() != fmt::format("{}/{}", folder, shard)) {
      throw UserError(fmt::format("'{}': shard {} has no tensor '{}', though the index says so", folder,
                                  printable(shard), printable(name)));
    }
  }
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

std::vector<std::string> WeightFiles::spellings(const std::string& name) {
  std::vector<std::string> spellings{name};
  for (const char* prefix : kPrefixes) spellings.push_back(prefix + name);
  return spellings;
}

std::string WeightFiles::spelled(const std::string& name) const {
  if (file_of_.contains(name)) return name;
  for (const std::string prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    std::string rest = name.substr(prefix.size());
    if (file_of_.contains(rest)) return rest;
  }
  return {};
}

const SafetensorsEntry* WeightFiles::find(const std::string& name) const {
  const std::string own = spelled(name);
  return own.empty() ? nullptr : files_[file_of_.at(own)].find(own);
}

void WeightFiles::read_float(const std::string& name, float* to, std::int64_t first,
                             std::int64_t count) const {
  const std::string own = spelled(name);
  require(!own.empty(), "a tensor that was found is read");
  files_[file_of_.at(own)].read_float(own, to, first, count);
}

}  // namespace penstock
