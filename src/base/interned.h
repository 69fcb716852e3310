#pragma once

#include <mutex>
#include <unordered_set>
#include <utility>

namespace penstock {

/// The one object of this value: whoever asks for an equal one is given the same. It stays for the life of
/// the process, so a plain pointer does to hold it, and equal values have equal pointers. For descriptions
/// that thousands of ops share. Any thread may call it.
template <typename T, typename Hash>
const T* interned(T value) {
  struct Table {
    std::mutex mutex;
    std::unordered_set<T, Hash> values;
  };
  // Never destroyed: objects that outlive main() may point into it.
  static Table& table = *new Table;
  const std::lock_guard<std::mutex> lock(table.mutex);
  return &*table.values.insert(std::move(value)).first;
}

}  // namespace penstock
