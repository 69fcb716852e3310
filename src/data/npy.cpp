#include "data/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::int64_t kLongestHeader = 1 << 20;

/// Reads the header's text, a Python dictionary of three known keys: {'descr': '<f4', 'fortran_order': False,
/// 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader parse() {
    NpyHeader header;
    int seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.type = quoted();
        seen |= 1;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        seen |= 2;
      } else if (key == "shape") {
        header.shape = tuple();
        seen |= 4;
      } else {
        fail();
      }
      if (!accept(',') && peek() != '}') fail();
    }
    if (seen != 7) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw UserError(fmt::format("{} has a malformed .npy header: {}", path_, printable(text_)));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ == text_.size()) fail();
    return text_[at_];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    peek();
    const bool value = text_.substr(at_).starts_with("True");
    if (!value && !text_.substr(at_).starts_with("False")) fail();
    at_ += value ? 4 : 5;
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(number());
      if (!accept(',') && peek() != ')') fail();
    }
    return sizes;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    bool any = false;
    for (char c = peek(); c >= '0' && c <= '9'; c = at_ < text_.size() ? text_[at_] : ' ') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value)) fail();
      any = true;
      ++at_;
    }
    if (!any) fail();
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t NpyHeader::elements() const {
  std::int64_t total = 1;
  for (const std::int64_t size : shape) total *= size;
  return total;
}

std::string format_shape(const std::vector<std::int64_t>& shape) {
  return printable(fmt::format("[{}]", fmt::join(shape, ", ")));
}

NpyHeader read_npy_header(const InputFile& file) {
  std::array<unsigned char, 12> start{};
  if (file.size_bytes() < 12)
    throw UserError(fmt::format("{} is cut short: no .npy file is so small", file.path()));
  file.read_at(0, start.data(), 12);
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0 || start[6] < 1 || start[6] > 3) {
    throw UserError(fmt::format("{} is not a .npy file", file.path()));
  }
  const bool small = start[6] == 1;
  const std::int64_t text_offset = small ? 10 : 12;
  std::int64_t text_bytes = start[8] | start[9] << 8;
  if (!small) text_bytes |= std::int64_t{start[10]} << 16 | std::int64_t{start[11]} << 24;
  if (text_bytes > kLongestHeader || text_offset + text_bytes > file.size_bytes()) {
    throw UserError(fmt::format("{} is cut short or damaged: its header of {} bytes is not there",
                                file.path(), text_bytes));
  }
  std::string text(static_cast<std::size_t>(text_bytes), '\0');
  file.read_at(text_offset, text.data(), text_bytes);
  NpyHeader header = HeaderParser(text, file.path()).parse();
  header.data_offset_bytes = text_offset + text_bytes;
  return header;
}

void check_npy(const InputFile& file, const NpyHeader& header, const std::string& type,
               std::int64_t type_bytes, const std::string& type_name) {
  if (header.type != type) {
    throw UserError(
        fmt::format("{} holds elements of type '{}', but {} ('{}') is needed: convert it with astype",
                    file.path(), printable(header.type), type_name, type));
  }
  if (header.fortran_order) {
    throw UserError(fmt::format(
        "{} is in Fortran order, but C order is needed: save numpy.ascontiguousarray of it", file.path()));
  }
  std::int64_t bytes = type_bytes;
  bool fits = true;
  for (const std::int64_t size : header.shape) fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  const std::int64_t data_bytes = file.size_bytes() - header.data_offset_bytes;
  if (!fits || bytes != data_bytes) {
    throw UserError(fmt::format("{} {}: it holds {} bytes of data, its shape {} does not match that",
                                file.path(),
                                !fits || bytes > data_bytes ? "is cut short" : "has the wrong length",
                                data_bytes, format_shape(header.shape)));
  }
}

}  // namespace penstock
