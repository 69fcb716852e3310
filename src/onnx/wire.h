#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/input_file.h"

namespace penstock::onnx {

/// A part of a file.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Bytes of a file by their positions, through one small buffer. One thread.
class ByteFile {
 public:
  explicit ByteFile(const std::string& path) : file_(path) {}

  const std::string& path() const { return file_.path(); }
  std::int64_t size() const { return file_.size_bytes(); }
  /// The byte at a position within the file.
  std::uint8_t at(std::int64_t position);
  /// UserError if the file ends before.
  void read(std::int64_t position, void* to, std::int64_t count) const { file_.read_at(position, to, count); }

 private:
  InputFile file_;
  std::vector<std::uint8_t> buffer_;
  std::int64_t buffer_begin_ = 0;
};

/// One field of a message in Protocol Buffers' wire format.
struct Field {
  std::uint32_t number = 0;
  enum class Kind : std::uint8_t { varint, fixed64, bytes, fixed32 } kind = Kind::varint;
  std::uint64_t value = 0;  ///< of varint and the fixed ones
  Range range;              ///< of bytes: where they lie; of the fixed ones: where the number lies

  std::int64_t integer() const { return static_cast<std::int64_t>(value); }
};

/// Reads the fields of one message after the other. Nothing is copied: what is within a message is a range of
/// the file, so that weights stay where they are. UserError names the file and the position of a damage.
class FieldReader {
 public:
  FieldReader(ByteFile& file, const Range& message) : file_(file), at_(message.begin), end_(message.end) {}

  /// False at the end of the message.
  bool next(Field& field);

 private:
  std::uint64_t varint();
  void take(std::int64_t count, Field& field);
  void fixed(int count, Field& field);
  [[noreturn]] void fail(const char* what) const;

  ByteFile& file_;
  std::int64_t at_, end_;
};

/// At most so many of anything small that a file lists: extents, attributes, indices.
inline constexpr std::int64_t kMaxListed = 1 << 20;

/// The text of a field, fit to be printed; UserError if it is longer than any name can be.
std::string read_text(ByteFile& file, const Field& field);
/// The numbers of a field of repeated integers, packed or one by one: appends to `to`.
void append_integers(ByteFile& file, const Field& field, std::vector<std::int64_t>& to);
/// The same of floats.
void append_floats(ByteFile& file, const Field& field, std::vector<float>& to);

}  // namespace penstock::onnx
