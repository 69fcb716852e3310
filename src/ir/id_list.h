#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace penstock::ir {

/// A list of ids that takes no memory of its own while it is short, as the operands of nearly all ops are: a
/// step may have hundreds of thousands of ops.
class IdList {
 public:
  using value_type = std::int32_t;

  IdList() = default;
  IdList(std::initializer_list<std::int32_t> ids) { assign({ids.begin(), ids.size()}); }
  template <typename Allocator>
  IdList(const std::vector<std::int32_t, Allocator>& ids) {
    assign(ids);
  }
  template <typename Iterator>
  IdList(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  IdList(const IdList& other) { assign(other); }
  IdList(IdList&& other) noexcept { take(other); }
  IdList& operator=(const IdList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  IdList& operator=(IdList&& other) noexcept {
    if (this != &other) {
      free();
      take(other);
    }
    return *this;
  }
  ~IdList() { free(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int32_t* begin() { return data(); }
  std::int32_t* end() { return data() + size_; }
  const std::int32_t* begin() const { return data(); }
  const std::int32_t* end() const { return data() + size_; }
  std::int32_t& operator[](std::size_t i) { return data()[i]; }
  std::int32_t operator[](std::size_t i) const { return data()[i]; }
  std::int32_t& at(std::size_t i);
  std::int32_t at(std::size_t i) const;
  std::int32_t front() const { return data()[0]; }
  std::int32_t& front() { return data()[0]; }
  std::int32_t back() const { return data()[size_ - 1]; }
  std::int32_t& back() { return data()[size_ - 1]; }

  void push_back(std::int32_t id);
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  /// Gives up what is behind the first `count`.
  void shorten(std::size_t count) { size_ = static_cast<std::uint32_t>(count); }
  /// Puts `id` before the one at `place`.
  void insert(const std::int32_t* place, std::int32_t id);
  void erase(const std::int32_t* place);

  bool operator==(const IdList& other) const;

 private:
  static constexpr std::uint32_t kInline = 4;

  void assign(std::span<const std::int32_t> ids);
  void take(IdList& other) noexcept;
  void reserve(std::uint32_t count);
  void free() {
    if (capacity_ > kInline) delete[] far_;
  }
  std::int32_t* data() { return capacity_ > kInline ? far_ : near_; }
  const std::int32_t* data() const { return capacity_ > kInline ? far_ : near_; }

  std::uint32_t size_ = 0, capacity_ = kInline;
  union {
    std::int32_t near_[kInline];
    std::int32_t* far_;
  };
};

}  // namespace penstock::ir
