#include "tier/faulty_file_io.h"

#include <algorithm>
#include <new>

namespace penstock {

bool FaultyFileIo::strikes() {
  const std::lock_guard lock(mutex_);
  const std::int64_t call = calls_++;
  return plan_.kind != Kind::none && (call == plan_.at || (plan_.lasting && call > plan_.at));
}

std::int64_t FaultyFileIo::struck(std::int64_t size_bytes) const {
  if (plan_.kind == Kind::error) return -plan_.error_number;
  if (plan_.kind == Kind::no_count) return 0;
  if (plan_.kind == Kind::throws) throw std::bad_alloc();
  // About half, and no whole page at the end: the rest has to go on from a page boundary. A single page is
  // never cut.
  return size_bytes <= 4096 ? size_bytes : size_bytes / 2 + 512;
}

ssize_t FaultyFileIo::read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  if (!strikes()) return FileIo::read_at(file, data, size_bytes, offset_bytes);
  const std::int64_t moved = struck(size_bytes);
  return moved <= 0 ? moved : FileIo::read_at(file, data, moved, offset_bytes);
}

ssize_t FaultyFileIo::write_at(int file, const void* data, std::int64_t size_bytes,
                               std::int64_t offset_bytes) {
  if (!strikes()) return FileIo::write_at(file, data, size_bytes, offset_bytes);
  const std::int64_t moved = struck(size_bytes);
  return moved <= 0 ? moved : FileIo::write_at(file, data, moved, offset_bytes);
}

int FaultyFileIo::allocate(int file, std::int64_t size_bytes) {
  return plan_.allocate_result != 0 ? plan_.allocate_result : FileIo::allocate(file, size_bytes);
}

std::int64_t FaultyFileIo::ring_result(bool /*is_write*/, std::int64_t size_bytes, std::int64_t result) {
  return strikes() ? std::min(struck(size_bytes), result) : result;
}

std::int64_t FaultyFileIo::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace penstock
