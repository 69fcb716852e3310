#include "onnx/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/text.h"

namespace penstock::onnx {
namespace {

constexpr std::int64_t kBufferBytes = 64 * 1024;
constexpr std::int64_t kMaxTextBytes = 64 * 1024;

void check_count(const ByteFile& file, std::size_t have, std::int64_t more) {
  if (static_cast<std::int64_t>(have) + more > kMaxListed)
    throw UserError(fmt::format("{}: a list of more than {} numbers", file.path(), kMaxListed));
}

}  // namespace

std::uint8_t ByteFile::at(std::int64_t position) {
  const std::int64_t offset = position - buffer_begin_;
  if (offset >= 0 && offset < static_cast<std::int64_t>(buffer_.size()))
    return buffer_[static_cast<std::size_t>(offset)];
  const std::int64_t count = std::clamp<std::int64_t>(size() - position, 1, kBufferBytes);
  buffer_.clear();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  read(position, bytes.data(), count);
  buffer_ = std::move(bytes);
  buffer_begin_ = position;
  return buffer_[0];
}

void FieldReader::fail(const char* what) const {
  throw UserError(fmt::format("{} is damaged or no ONNX file: {} before byte {}", file_.path(), what, at_));
}

std::uint64_t FieldReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ >= end_) fail("a number is cut short");
    const std::uint8_t byte = file_.at(at_++);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  fail("a number is too long");
}

void FieldReader::take(std::int64_t count, Field& field) {
  if (count < 0 || count > end_ - at_) fail("a field is longer than what it is in");
  field.range = {at_, at_ + count};
  at_ += count;
}

void FieldReader::fixed(int count, Field& field) {
  take(count, field);
  field.value = 0;
  for (int i = 0; i < count; ++i) {
    field.value |= static_cast<std::uint64_t>(file_.at(field.range.begin + i))
                   << static_cast<unsigned>(8 * i);
  }
}

bool FieldReader::next(Field& field) {
  if (at_ >= end_) return false;
  const std::uint64_t tag = varint();
  if (tag >> 3U == 0 || tag >> 3U > 0x1FFFFFFFU) fail("a field has no number");
  field.number = static_cast<std::uint32_t>(tag >> 3U);
  switch (tag & 7U) {
    case 0:
      field.kind = Field::Kind::varint;
      field.value = varint();
      return true;
    case 1:
      field.kind = Field::Kind::fixed64;
      fixed(8, field);
      return true;
    case 2: {
      field.kind = Field::Kind::bytes;
      const std::uint64_t count = varint();
      if (count > static_cast<std::uint64_t>(end_ - at_)) fail("a field is longer than what it is in");
      take(static_cast<std::int64_t>(count), field);
      return true;
    }
    case 5:
      field.kind = Field::Kind::fixed32;
      fixed(4, field);
      return true;
    default:
      fail("a field is of no known type");
  }
}

std::string read_text(ByteFile& file, const Field& field) {
  if (field.kind != Field::Kind::bytes || field.range.size() > kMaxTextBytes) {
    throw UserError(fmt::format("{} is damaged or no ONNX file: a name at byte {} is no text or too long",
                                file.path(), field.range.begin));
  }
  std::string text(static_cast<std::size_t>(field.range.size()), '\0');
  file.read(field.range.begin, text.data(), field.range.size());
  return text;
}

void append_integers(ByteFile& file, const Field& field, std::vector<std::int64_t>& to) {
  if (field.kind != Field::Kind::bytes) {
    check_count(file, to.size(), 1);
    to.push_back(field.integer());
    return;
  }
  for (std::int64_t at = field.range.begin; at < field.range.end;) {
    check_count(file, to.size(), 1);
    std::uint64_t value = 0;
    bool complete = false;
    for (unsigned shift = 0; shift < 64 && at < field.range.end && !complete; shift += 7) {
      const std::uint8_t byte = file.at(at++);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      complete = (byte & 0x80U) == 0;
    }
    if (!complete) throw UserError(fmt::format("{} is damaged: a number before byte {}", file.path(), at));
    to.push_back(static_cast<std::int64_t>(value));
  }
}

void append_floats(ByteFile& file, const Field& field, std::vector<float>& to) {
  if (field.kind == Field::Kind::fixed32) {
    check_count(file, to.size(), 1);
    to.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    return;
  }
  if (field.kind != Field::Kind::bytes || field.range.size() % 4 != 0)
    throw UserError(fmt::format("{} is damaged: floats at byte {}", file.path(), field.range.begin));
  const std::int64_t count = field.range.size() / 4;
  check_count(file, to.size(), count);
  const std::size_t old = to.size();
  to.resize(old + static_cast<std::size_t>(count));
  file.read(field.range.begin, to.data() + old, count * 4);
}

}  // namespace penstock::onnx
