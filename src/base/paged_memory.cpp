#include "base/paged_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/nameless_file.h"
#include "base/threads.h"

namespace penstock {
namespace {

/// Of files that are mapped: what the process has of them in memory, by the kernel's count.
class FileResident {
 public:
  FileResident() : descriptor_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  ~FileResident() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileResident(const FileResident&) = delete;
  FileResident& operator=(const FileResident&) = delete;

  /// -1: nobody tells.
  std::int64_t bytes() const {
    std::array<char, 128> text{};
    const ssize_t length = descriptor_ < 0 ? -1 : ::pread(descriptor_, text.data(), text.size(), 0);
    // The third number is of pages that are of files or shared.
    const char* at = text.data();
    const char* const end = text.data() + std::max<ssize_t>(0, length);
    std::int64_t pages = -1;
    for (int i = 0; i < 3; ++i) {
      while (at < end && *at == ' ') ++at;
      const auto [next, error] = std::from_chars(at, end, pages);
      if (error != std::errc()) return -1;
      at = next;
    }
    return pages * ::sysconf(_SC_PAGESIZE);
  }

 private:
  int descriptor_;
};

/// The blocks of the process and the thread that keeps them within bounds. There is one, for ever: blocks may
/// be freed by whatever is destroyed last.
class Blocks {
 public:
  static Blocks& instance() {
    static auto* const blocks = new Blocks;  // NOLINT(cppcoreguidelines-owning-memory): see above
    return *blocks;
  }

  bool join(const std::string& folder, std::int64_t resident_bytes) {
    const std::unique_lock lock(mutex_);
    if (folders_.empty()) {
      try {
        keeper_ = start_thread([this] { keep_within_bounds(); }, "gives memory back");
      } catch (const RunError&) {
        return false;
      }
    }
    folders_.push_back(folder);
    limits_.push_back(resident_bytes);
    return true;
  }

  void leave(const std::string& folder, std::int64_t resident_bytes) {
    std::thread ended;
    {
      const std::unique_lock lock(mutex_);
      folders_.erase(std::find(folders_.begin(), folders_.end(), folder));
      limits_.erase(std::find(limits_.begin(), limits_.end(), resident_bytes));
      if (folders_.empty()) {
        ended = std::move(keeper_);
        for (const auto& [bytes, block] : spare_) ::munmap(block, bytes);
        spare_.clear();
        spare_bytes_ = 0;
      }
    }
    changed_.notify_all();
    if (ended.joinable()) ended.join();
  }

  /// Null where it cannot be.
  void* allocate(std::size_t asked_bytes) {
    const std::size_t bytes = rounded(asked_bytes);
    std::string folder;
    void* block = nullptr;
    {
      const std::unique_lock lock(mutex_);
      if (folders_.empty()) return nullptr;
      folder = folders_.back();
      if (const auto found = spare_.find(bytes); found != spare_.end()) {
        block = found->second;
        spare_.erase(found);
        spare_bytes_ -= bytes;
      }
    }
    if (block == nullptr) block = map_file(folder, bytes);
    if (block == nullptr) return nullptr;
    try {
      const std::unique_lock lock(mutex_);
      blocks_.emplace(block, bytes);
      bytes_ += static_cast<std::int64_t>(bytes);
    } catch (const std::bad_alloc&) {
      ::munmap(block, bytes);
      return nullptr;
    }
    changed_.notify_all();
    return block;
  }

  /// False: it is none of these.
  bool free(void* block) noexcept {
    std::size_t bytes = 0;
    {
      const std::unique_lock lock(mutex_);
      const auto found = blocks_.find(block);
      if (found == blocks_.end()) return false;
      bytes = found->second;
      bytes_ -= static_cast<std::int64_t>(bytes);
      blocks_.erase(found);
      if (keep(block, bytes)) return true;
    }
    ::munmap(block, bytes);
    return true;
  }

  std::int64_t bytes() {
    const std::unique_lock lock(mutex_);
    return bytes_;
  }

  void evict() {
    const std::unique_lock lock(mutex_);
    evict_all();
  }

 private:
  /// Spare blocks are taken for others of the same size, so there are few sizes: eight between a power of two
  /// and the next.
  static std::size_t rounded(std::size_t bytes) {
    const std::size_t step = std::bit_floor(bytes) / 8;
    return (bytes + step - 1) / step * step;
  }

  /// With the mutex held: as a spare block. To make a block and write to it for the first time takes several
  /// times as long as to use one again, and planning makes many that it soon gives up.
  bool keep(void* block, std::size_t bytes) noexcept {
    constexpr std::size_t kMostSpareBytes = std::size_t{256} << 20;
    if (folders_.empty() || spare_bytes_ + bytes > kMostSpareBytes) return false;
    try {
      spare_.emplace(bytes, block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    spare_bytes_ += bytes;
    return true;
  }

  static void* map_file(const std::string& folder, std::size_t bytes) {
    const int descriptor = open_nameless_file(folder, 0);
    if (descriptor < 0) return nullptr;
    void* block = MAP_FAILED;  // NOLINT(performance-no-int-to-ptr): the system's constant
    // The room is taken at once: a disk that fills up later could not be told to whoever writes there.
    if (::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) == 0)
      block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    return block == MAP_FAILED ? nullptr : block;  // NOLINT(performance-no-int-to-ptr)
  }

  /// With the mutex held. Pages of a shared mapping that are given back are written to the file before the
  /// system takes them for something else.
  void evict_all() {
    for (const auto& [block, bytes] : blocks_) ::madvise(block, bytes, MADV_DONTNEED);
    for (const auto& [bytes, block] : spare_) ::madvise(block, bytes, MADV_DONTNEED);
  }

  std::int64_t all_bytes() const { return bytes_ + static_cast<std::int64_t>(spare_bytes_); }

  void keep_within_bounds() {
    const FileResident resident;
    std::unique_lock lock(mutex_);
    std::int64_t others = -1;  // of other files, as far as is known
    const auto limit = [this] { return *std::min_element(limits_.begin(), limits_.end()); };
    for (;;) {
      changed_.wait(lock, [&] { return folders_.empty() || all_bytes() > limit(); });
      if (folders_.empty()) return;
      const std::int64_t all = resident.bytes();
      if (others < 0 || all - others > limit() || all < 0) {
        evict_all();
        others = resident.bytes();
      }
      others = std::min(others, all);
      changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return folders_.empty(); });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> folders_;
  std::vector<std::int64_t> limits_;
  std::map<void*, std::size_t> blocks_;
  std::multimap<std::size_t, void*> spare_;
  std::size_t spare_bytes_ = 0;
  std::int64_t bytes_ = 0;
  std::thread keeper_;
};

}  // namespace

PagedMemory::PagedMemory(std::string folder, std::int64_t resident_bytes)
    : folder_(std::move(folder)), resident_bytes_(resident_bytes) {
  if (folder_.empty() || is_memory_filesystem(folder_)) return;
  const int tried = open_nameless_file(folder_, 0);
  if (tried < 0) return;
  ::close(tried);
  works_ = Blocks::instance().join(folder_, resident_bytes_);
}

PagedMemory::~PagedMemory() {
  if (works_) Blocks::instance().leave(folder_, resident_bytes_);
}

void* allocate_paged(std::size_t bytes) {
  if (bytes >= kLeastPagedBytes) {
    if (void* const block = Blocks::instance().allocate(bytes)) return block;
  }
  return ::operator new(bytes);
}

void free_paged(void* block, std::size_t bytes) noexcept {
  if (bytes >= kLeastPagedBytes && Blocks::instance().free(block)) return;
  ::operator delete(block);
}

std::int64_t paged_bytes() {
  return Blocks::instance().bytes();
}

void evict_paged() {
  Blocks::instance().evict();
}

}  // namespace penstock
