#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/input_file.h"

namespace penstock {

/// Name, type ("F32", "I64", ... as the format spells it) and shape of a tensor to be written.
struct SafetensorsSpec {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
};

/// A tensor of a file; its bytes lie at offset_bytes of the data that follows the header.
struct SafetensorsEntry {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
};

/// Bytes per element of a type of the format, 0 if there is no such type.
std::int64_t safetensors_element_bytes(const std::string& type);

/// A safetensors file open for reading. Its header is checked at once: what it says of the data is true of
/// the file. Tensors are read from disk piece by piece, the file is never whole in memory. Any thread may
/// read.
class SafetensorsFile {
 public:
  /// Throws UserError if the file is missing or is not a sound safetensors file.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// In the order of their data.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null if there is none of that name.
  const SafetensorsEntry* find(const std::string& name) const;

  /// Copies size_bytes of a tensor, from offset_bytes on, as they are in the file.
  void read(const std::string& name, void* to, std::int64_t offset_bytes, std::int64_t size_bytes) const;

  /// Reads `count` elements from element `first` on and converts them from F32, F16, BF16, F64 or I64.
  /// Throws UserError for any other type.
  void read_float(const std::string& name, float* to, std::int64_t first, std::int64_t count) const;

 private:
  explicit SafetensorsFile(InputFile file) : file_(std::move(file)) {}
  const SafetensorsEntry& entry(const std::string& name) const;

  InputFile file_;
  std::int64_t data_offset_bytes_ = 0;
  std::vector<SafetensorsEntry> tensors_;
  std::vector<std::uint32_t> by_name_;  ///< places in tensors_, sorted by their names
  std::map<std::string, std::string> metadata_;
};

/// Writes a safetensors file as a stream: all tensors are declared first, then their bytes follow in that
/// order. The file gets its name at commit(), complete and synced; without it nothing is left behind (see
/// AtomicFile). Metadata that is not UTF-8 is escaped. One thread at a time.
class SafetensorsWriter {
 public:
  /// Declare types of larger elements first: each tensor must lie at a multiple of its element size.
  /// The default metadata is what PyTorch's loaders look for. Throws UserError if the folder cannot be
  /// written.
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsSpec>& tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The next bytes of the data; pieces need not end with a tensor. Throws RunError if the disk is full.
  void append(const void* data, std::int64_t size_bytes);

  /// All bytes are there: they are on disk from now on, without the name.
  void sync();
  /// All bytes are there: syncs the file and renames it to its path, replacing what was there.
  void commit();

 private:
  std::int64_t bytes_left_ = 0;
  std::string header_;
  AtomicFile file_;
  bool committed_ = false;
};

}  // namespace penstock
