#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/// An anonymous private mapping, aligned to 2 MiB; unmapped by the destructor. Takes no physical memory by
/// itself.
class AddressRange {
 public:
  enum class Access { none, read_write };

  AddressRange() = default;
  /// Throws UserError when the kernel refuses.
  AddressRange(std::int64_t size_bytes, Access access);
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  /// Opens the first bytes for reading and writing and takes their physical memory at once, as huge pages
  /// where that is possible, by several threads. Later on the kernel makes no further huge page here of its
  /// own accord, because that would take memory that nobody counted.
  void populate(std::int64_t bytes);
  void populate() { populate(size_bytes_); }

 private:
  void* mapping_ = nullptr;
  std::int64_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
};

/// Throws UserError when `size_bytes` is more than this process may take; `what` names the taker.
void require_available(std::int64_t size_bytes, const char* what);

}  // namespace penstock
