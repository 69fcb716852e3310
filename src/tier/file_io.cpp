#include "tier/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace penstock {

ssize_t FileIo::read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  const ssize_t result = ::pread(file, data, static_cast<std::size_t>(size_bytes), offset_bytes);
  return result < 0 ? -errno : result;
}

ssize_t FileIo::write_at(int file, const void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  const ssize_t result = ::pwrite(file, data, static_cast<std::size_t>(size_bytes), offset_bytes);
  return result < 0 ? -errno : result;
}

int FileIo::allocate(int file, std::int64_t size_bytes) {
  int result = 0;
  do {
    result = ::fallocate(file, 0, 0, size_bytes) == 0 ? 0 : -errno;
  } while (result == -EINTR);
  return result;
}

std::int64_t FileIo::ring_result(bool /*is_write*/, std::int64_t /*size_bytes*/, std::int64_t result) {
  return result;
}

}  // namespace penstock
