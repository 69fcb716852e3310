#include "support/files/failing_new.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

thread_local std::int64_t left = -1;
thread_local bool failed = false;

/// Whether oneDNN asks. It frees some things twice where memory fails it, which is not ours to mend: the next
/// one that asks fails in its place.
bool asked_by_onednn() {
  constexpr int kMostFrames = 64;
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && info.dli_fname != nullptr && std::strstr(info.dli_fname, "libdnnl"))
      return true;
  }
  return false;
}

void* take(std::size_t size, std::size_t alignment) {
  if (left >= 0 && left-- == 0) {
    left = -1;  // What looks at the stack may ask too.
    if (asked_by_onednn()) {
      left = 0;
    } else {
      failed = true;
      return nullptr;
    }
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
