#include "data/gzip_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/input_file.h"
#include "base/text.h"

namespace penstock {
namespace {

/// Deflate shrinks nothing by more than this.
constexpr std::int64_t kBestRatio = 1032;
constexpr std::int64_t kPieceBytes = 1 << 20;

}  // namespace

GzipReader::GzipReader(std::string path) : path_(std::move(path)) {
  const InputFile file(path_);
  std::array<unsigned char, 2> magic{};
  file.read_at(0, magic.data(), std::min<std::int64_t>(2, file.size_bytes()));
  gzipped_ = magic[0] == 0x1f && magic[1] == 0x8b;
  largest_content_bytes_ = file.size_bytes() * (gzipped_ ? kBestRatio : 1);
  stream_ = gzopen(path_.c_str(), "rb");
  if (stream_ == nullptr) throw UserError(fmt::format("cannot open {}", path_));
}

GzipReader::~GzipReader() {
  gzclose_r(stream_);
}

std::int64_t GzipReader::read_some(void* to, std::int64_t size_bytes) {
  auto* at = static_cast<char*>(to);
  std::int64_t total = 0;
  while (total < size_bytes) {
    const auto piece = static_cast<unsigned>(std::min(kPieceBytes, size_bytes - total));
    const int got = gzread(stream_, at + total, piece);
    int code = Z_OK;
    const char* text = gzerror(stream_, &code);
    if (code == Z_ERRNO) throw RunError(fmt::format("cannot read {}: {}", path_, text));
    if (got < 0 || code != Z_OK) {
      throw UserError(fmt::format("{} is damaged or cut short: gzip says '{}'", path_, printable(text)));
    }
    if (got == 0) break;
    total += got;
  }
  return total;
}

void GzipReader::read(void* to, std::int64_t size_bytes) {
  const std::int64_t got = read_some(to, size_bytes);
  if (got < size_bytes) {
    throw UserError(fmt::format("{} is cut short: {} more bytes are needed", path_, size_bytes - got));
  }
}

void GzipReader::expect_end() {
  char extra = 0;
  if (read_some(&extra, 1) != 0) {
    throw UserError(fmt::format("{} is longer than its header says", path_));
  }
}

}  // namespace penstock
