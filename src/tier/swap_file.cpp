#include "tier/swap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nameless_file.h"
#include "tier/swap_dir.h"
#include "tier/tier.h"

namespace penstock {
namespace {

/// Whether the kernel takes direct transfers on our page boundaries.
bool direct_alignment_fits(int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const std::uint32_t memory = status.stx_dio_mem_align;
    const std::uint32_t offset = status.stx_dio_offset_align;
    return memory > 0 && offset > 0 && kTierAlignment % memory == 0 && kTierAlignment % offset == 0;
  }
#endif
  // An older kernel does not tell; 4 KiB serves every common device.
  return descriptor >= 0;
}

}  // namespace

SwapFile SwapFile::on_disk(const std::string& directory, std::int64_t size_bytes, FileIo& io) {
  int descriptor = open_nameless_file(directory, O_DIRECT);
  bool direct = descriptor >= 0;
  if (direct && !direct_alignment_fits(descriptor)) {
    ::close(descriptor);
    descriptor = -1;
    errno = EINVAL;
  }
  if (descriptor < 0 && errno == EINVAL) {
    direct = false;
    descriptor = open_nameless_file(directory, 0);
  }
  if (descriptor < 0) {
    throw UserError(fmt::format("cannot make a swap file in '{}': {}; name another swap folder", directory,
                                std::strerror(errno)));
  }
  SwapFile file(descriptor, direct);
  if (size_bytes == 0) return file;
  int result = io.allocate(descriptor, size_bytes);
  if (result == -EOPNOTSUPP || result == -ENOSYS) {
    file.reserved_ = false;
    result = ::ftruncate(descriptor, size_bytes) == 0 ? 0 : -errno;
  }
  if (result == -ENOSPC || result == -EDQUOT) {
    throw UserError(
        fmt::format("the swap directory '{}' has too little space: needed {}, there {}; free some or name "
                    "another swap folder",
                    directory, format_bytes(size_bytes), format_bytes(free_disk_bytes(directory))));
  }
  if (result != 0) {
    throw UserError(fmt::format("cannot allocate {} for swapping in '{}': {}; name another swap folder",
                                format_bytes(size_bytes), directory, std::strerror(-result)));
  }
  return file;
}

SwapFile SwapFile::in_memory(std::int64_t size_bytes, FileIo& io) {
  const int descriptor = ::memfd_create("penstock-ram-tier", MFD_CLOEXEC);
  if (descriptor < 0) throw UserError(fmt::format("cannot make a ram tier: {}", std::strerror(errno)));
  SwapFile file(descriptor, false);
  const int result = size_bytes == 0 ? 0 : io.allocate(descriptor, size_bytes);
  if (result != 0) {
    throw UserError(fmt::format("the ram tier needs {} of memory outside the budget: {}; swap to disk",
                                format_bytes(size_bytes), std::strerror(-result)));
  }
  return file;
}

SwapFile::SwapFile(SwapFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), direct_(other.direct_), reserved_(other.reserved_) {}

SwapFile::~SwapFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace penstock
