#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

/// SHA-256 (FIPS 180-4) of a stream of bytes.
class Sha256 {
 public:
  /// `portable`: without the processor's SHA instructions.
  explicit Sha256(bool portable = false);
  void update(const void* data, std::size_t size_bytes);
  /// The digest in hexadecimal; the object is spent afterwards.
  std::string finish();

 private:
  void compress(const std::uint8_t* data, std::size_t blocks);
  void compress_portable(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t total_bytes_ = 0;
  bool instructions_;
};

}  // namespace penstock
