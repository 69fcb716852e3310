#include "ir/id_list.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::ir {

std::int32_t& IdList::at(std::size_t i) {
  require(i < size_, "a list of ids is shorter than that");
  return data()[i];
}

std::int32_t IdList::at(std::size_t i) const {
  require(i < size_, "a list of ids is shorter than that");
  return data()[i];
}

void IdList::push_back(std::int32_t id) {
  if (size_ == capacity_) reserve(2 * capacity_);
  data()[size_++] = id;
}

void IdList::insert(const std::int32_t* place, std::int32_t id) {
  const auto at = place - data();
  push_back(id);
  std::rotate(data() + at, end() - 1, end());
}

void IdList::erase(const std::int32_t* place) {
  std::copy(place + 1, static_cast<const std::int32_t*>(end()), data() + (place - data()));
  --size_;
}

bool IdList::operator==(const IdList& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

void IdList::assign(std::span<const std::int32_t> ids) {
  size_ = 0;
  // As large as need be and no larger: lists are seldom added to once they are copied.
  if (ids.size() > capacity_) reserve(static_cast<std::uint32_t>(ids.size()));
  std::copy(ids.begin(), ids.end(), data());
  size_ = static_cast<std::uint32_t>(ids.size());
}

void IdList::take(IdList& other) noexcept {
  size_ = other.size_;
  capacity_ = other.capacity_;
  if (capacity_ > kInline) {
    far_ = other.far_;
  } else {
    std::copy(other.near_, other.near_ + other.size_, near_);
  }
  other.size_ = 0;
  other.capacity_ = kInline;
}

void IdList::reserve(std::uint32_t count) {
  auto* more = new std::int32_t[count];
  std::copy(begin(), end(), more);
  free();
  far_ = more;
  capacity_ = count;
}

}  // namespace penstock::ir
