#include "data/byte_store.h"

#include <cstring>
#include <utility>

#include "base/error.h"

namespace penstock {

ByteStore::ByteStore(std::vector<std::uint8_t> bytes, std::int64_t record_bytes)
    : record_bytes_(record_bytes),
      size_(static_cast<std::int64_t>(bytes.size()) / record_bytes),
      bytes_(std::move(bytes)) {}

ByteStore::ByteStore(std::int64_t record_bytes) : record_bytes_(record_bytes) {}

void ByteStore::add_file(InputFile file, std::int64_t offset_bytes, std::int64_t stride_bytes,
                         std::int64_t count) {
  require(bytes_.empty(), "a byte store is either in memory or in files");
  parts_.push_back({std::move(file), size_, offset_bytes, stride_bytes});
  size_ += count;
}

void ByteStore::read(std::int64_t index, std::uint8_t* to) const {
  require(index >= 0 && index < size_, "record index out of range");
  if (!bytes_.empty()) {
    std::memcpy(to, bytes_.data() + index * record_bytes_, static_cast<std::size_t>(record_bytes_));
    return;
  }
  std::size_t at = parts_.size() - 1;
  while (parts_[at].first > index) --at;
  const Part& part = parts_[at];
  part.file.read_at(part.offset_bytes + (index - part.first) * part.stride_bytes, to, record_bytes_);
}

}  // namespace penstock
