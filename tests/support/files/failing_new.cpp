#include "support/files/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t left = -1;
thread_local bool failed = false;

void* take(std::size_t size, std::size_t alignment) {
  if (left >= 0 && left-- == 0) {
    failed = true;
    return nullptr;
  }
  if (size == 0) size = 1;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(size)
             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
  void* taken = take(size, alignment);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}

}  // namespace

/// Read by LeakSanitizer. Where memory fails it while it generates code, oneDNN throws past what it holds.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libdnnl.so";
}

void* operator new(std::size_t size) {
  return take_or_throw(size, 0);
}
void* operator new[](std::size_t size) {
  return take_or_throw(size, 0);
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return take(size, 0);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return take(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return take_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace penstock::testing {

FailingNew::FailingNew(std::int64_t at) : at_(at) {
  failed = false;
  left = at;
}

FailingNew::~FailingNew() {
  left = -1;
}

std::int64_t FailingNew::taken() const {
  return at_ - left;
}

bool FailingNew::struck() {
  return failed;
}

}  // namespace penstock::testing
