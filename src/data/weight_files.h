#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/safetensors.h"

namespace penstock {

/// Weights by name: a safetensors file, or a folder as of the Hugging Face hub with model.safetensors or with
/// shards and their model.safetensors.index.json. A tensor is found under its own name or without what names
/// of a whole model begin with (`transformer.`, `model.`). Any thread may read.
class WeightFiles {
 public:
  /// Throws UserError if a file is missing, is not sound, or lacks a tensor that the index says it has.
  static WeightFiles open(const std::string& path);

  const std::string& path() const { return path_; }
  /// As the files spell them.
  std::vector<std::string> names() const;
  /// Null if there is none of that name.
  const SafetensorsEntry* find(const std::string& name) const;
  /// See SafetensorsFile::read_float().
  void read_float(const std::string& name, float* to, std::int64_t first, std::int64_t count) const;

  /// The names that a network may have for a tensor that a file calls `name`.
  static std::vector<std::string> spellings(const std::string& name);

 private:
  explicit WeightFiles(std::string path) : path_(std::move(path)) {}
  void add(const std::string& file);
  void add_shards(const std::string& folder, const std::string& index);
  /// The name as a file has it; empty: none has.
  std::string spelled(const std::string& name) const;

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;  ///< by tensor's name
};

}  // namespace penstock
