#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penstock {

/// Version 1 had no checksum of the header; it is still read.
inline constexpr const char* kCheckpointFormat = "penstock-checkpoint-2";
inline constexpr const char* kFirstCheckpointFormat = "penstock-checkpoint-1";
/// The last tensor: a 64-bit checksum of each other one, as pairs of 32-bit words.
inline constexpr const char* kChecksumsTensor = "penstock.checksums";
/// The checksum of the header, among the metadata.
inline constexpr const char* kHeaderChecksum = "penstock.header-checksum";
inline constexpr const char* kCheckpointName = "checkpoint.safetensors";

/// Over all metadata but itself, and name and shape of each tensor in the order of the data.
class HeaderChecksum {
 public:
  void add(const std::string& text);
  void add(std::int64_t number);
  void add_metadata(const std::map<std::string, std::string>& metadata);
  void add_tensor(const std::string& name, const std::vector<std::int64_t>& shape);
  /// In hexadecimal.
  std::string text() const;

 private:
  std::string bytes_;
};

std::uint64_t values_checksum(const float* values, std::int64_t size_bytes);

}  // namespace penstock
