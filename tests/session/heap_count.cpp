#include "session/heap_count.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> now{0}, most{0};

/// Null where there is no memory.
void* give(std::size_t bytes) noexcept {
  void* data = std::malloc(bytes);
  if (data == nullptr) return nullptr;
  // What the heap takes for it, with the word before it.
  const std::int64_t taken = now += static_cast<std::int64_t>(malloc_usable_size(data) + sizeof(std::size_t));
  std::int64_t seen = most;
  while (taken > seen && !most.compare_exchange_weak(seen, taken)) {
  }
  return data;
}

void take(void* data) noexcept {
  if (data == nullptr) return;
  now -= static_cast<std::int64_t>(malloc_usable_size(data) + sizeof(std::size_t));
  std::free(data);
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* data = give(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return give(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return give(bytes);
}
void operator delete(void* data) noexcept {
  take(data);
}
void operator delete[](void* data) noexcept {
  take(data);
}
void operator delete(void* data, std::size_t) noexcept {
  take(data);
}
void operator delete[](void* data, std::size_t) noexcept {
  take(data);
}

namespace penstock::testing {

std::int64_t heap_bytes() {
  return now;
}

std::int64_t heap_peak_bytes() {
  return most.exchange(now);
}

}  // namespace penstock::testing
