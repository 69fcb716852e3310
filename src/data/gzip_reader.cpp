#include "data/gzip_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

/// Deflate shrinks nothing by more than this.
constexpr std::int64_t kBestRatio = 1032;
/// zlib is to expect gzip's header and checksum around the deflated bytes.
constexpr int kGzip = 16 + MAX_WBITS;

}  // namespace

/// zlib's state and the compressed bytes that it has not seen yet.
struct GzipReader::Inflater {
  Inflater() {
    if (inflateInit2(&stream, kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  std::array<unsigned char, 65536> compressed{};
  bool ended = false;
};

GzipReader::GzipReader(std::string path) : file_(std::move(path)) {
  std::array<unsigned char, 2> magic{};
  file_.read_at(0, magic.data(), std::min<std::int64_t>(2, file_.size_bytes()));
  gzipped_ = magic[0] == 0x1f && magic[1] == 0x8b;
  const std::int64_t ratio = gzipped_ ? kBestRatio : 1;
  largest_content_bytes_ = file_.size_bytes() > std::numeric_limits<std::int64_t>::max() / ratio
                               ? std::numeric_limits<std::int64_t>::max()
                               : file_.size_bytes() * ratio;
  if (gzipped_) inflater_ = std::make_unique<Inflater>();
}

GzipReader::~GzipReader() = default;

bool GzipReader::refill() {
  auto& buffer = inflater_->compressed;
  const std::int64_t here =
      std::min<std::int64_t>(static_cast<std::int64_t>(buffer.size()), file_.size_bytes() - position_bytes_);
  if (here <= 0) return false;
  file_.read_at(position_bytes_, buffer.data(), here);
  position_bytes_ += here;
  inflater_->stream.next_in = buffer.data();
  inflater_->stream.avail_in = static_cast<unsigned>(here);
  return true;
}

std::int64_t GzipReader::inflate_some(void* to, std::int64_t size_bytes) {
  z_stream& stream = inflater_->stream;
  stream.next_out = static_cast<unsigned char*>(to);
  stream.avail_out = static_cast<unsigned>(size_bytes);
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0 && !refill()) {
      if (inflater_->ended) break;
      throw UserError(fmt::format("{} is damaged or cut short: its gzip data ends too early", file_.path()));
    }
    if (inflater_->ended) {
      // Another member may follow; anything else behind the last one is not ours.
      if (stream.next_in[0] != 0x1f) break;
      inflateReset(&stream);
      inflater_->ended = false;
    }
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      throw UserError(fmt::format("{} is damaged or cut short: gzip says '{}'", file_.path(),
                                  printable(stream.msg != nullptr ? stream.msg : "data error")));
    }
    inflater_->ended = code == Z_STREAM_END;
  }
  return size_bytes - stream.avail_out;
}

std::int64_t GzipReader::read_some(void* to, std::int64_t size_bytes) {
  if (!gzipped_) {
    const std::int64_t here = std::min(size_bytes, file_.size_bytes() - position_bytes_);
    file_.read_at(position_bytes_, to, here);
    position_bytes_ += here;
    return here;
  }
  constexpr std::int64_t kPieceBytes = 1 << 20;
  auto* at = static_cast<char*>(to);
  std::int64_t total = 0;
  while (total < size_bytes) {
    const std::int64_t got = inflate_some(at + total, std::min(kPieceBytes, size_bytes - total));
    if (got == 0) break;
    total += got;
  }
  return total;
}

void GzipReader::read(void* to, std::int64_t size_bytes) {
  const std::int64_t got = read_some(to, size_bytes);
  if (got < size_bytes) {
    throw UserError(fmt::format("{} is cut short: {} more bytes are needed", file_.path(), size_bytes - got));
  }
}

std::vector<std::uint8_t> GzipReader::read_all(std::int64_t size_bytes, std::int64_t limit_bytes) {
  if (size_bytes > limit_bytes) {
    throw UserError(fmt::format("{} takes {} of memory{}, and there is {} for data: {}", file_.path(),
                                format_bytes(size_bytes), gzipped_ ? " once it is inflated" : "",
                                format_bytes(limit_bytes),
                                gzipped_ ? "gunzip it, since plain files stay on disk" : "give more memory"));
  }
  constexpr std::int64_t kPieceBytes = 4 << 20;
  std::vector<std::uint8_t> bytes;
  // Reserved memory is taken only as it is filled, and it is filled with what the file really has.
  bytes.reserve(static_cast<std::size_t>(size_bytes));
  for (std::int64_t done = 0; done < size_bytes;) {
    const std::int64_t here = std::min(kPieceBytes, size_bytes - done);
    bytes.resize(static_cast<std::size_t>(done + here));
    read(bytes.data() + done, here);
    done += here;
  }
  expect_end();
  return bytes;
}

void GzipReader::expect_end() {
  char extra = 0;
  if (read_some(&extra, 1) != 0) {
    throw UserError(fmt::format("{} is longer than its header says", file_.path()));
  }
}

}  // namespace penstock
