#include <malloc.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "data/image_file.h"

namespace penstock {
namespace {

/// libpng reports errors by a call that must not return: it jumps back to the guard() around the call of
/// libpng.
struct ErrorTrap {
  std::jmp_buf back;
  char message[200];
};

void jump_back(png_structp decoder, png_const_charp message) {
  auto* trap = static_cast<ErrorTrap*>(png_get_error_ptr(decoder));
  std::snprintf(trap->message, sizeof(trap->message), "%s", message);
  std::longjmp(trap->back, 1);
}

void drop_message(png_structp /*decoder*/, png_const_charp /*message*/) {}

/// What libpng holds, which is bounded: its own limits are on single chunks.
struct Memory {
  std::size_t limit_bytes = 0;
  std::size_t held_bytes = 0;
  bool refused_by_system = false;
};

png_voidp take_memory(png_structp decoder, png_alloc_size_t size_bytes) {
  auto* memory = static_cast<Memory*>(png_get_mem_ptr(decoder));
  if (size_bytes > memory->limit_bytes - std::min(memory->limit_bytes, memory->held_bytes)) return nullptr;
  void* taken = std::malloc(size_bytes);
  memory->refused_by_system = taken == nullptr;
  memory->held_bytes += ::malloc_usable_size(taken);
  return taken;
}

void give_memory(png_structp decoder, png_voidp taken) {
  static_cast<Memory*>(png_get_mem_ptr(decoder))->held_bytes -= ::malloc_usable_size(taken);
  std::free(taken);
}

void read_bytes(png_structp decoder, png_bytep to, std::size_t size_bytes) {
  auto* source = static_cast<ImageSource*>(png_get_io_ptr(decoder));
  const auto wanted = static_cast<std::int64_t>(size_bytes);
  if (source->read(to, wanted) < wanted) png_error(decoder, "it is cut short");
}

/// No chunk but the pixels themselves may take more.
constexpr png_alloc_size_t kLargestChunkBytes = 1 << 20;
constexpr png_uint_32 kMostChunks = 100;
constexpr std::size_t kTablesBytes = 1 << 20;

class PngRows final : public ImageRows {
 public:
  PngRows(ImageSource source, const DecodeOptions& options) : source_(std::move(source)) {
    // Beyond the rows that are counted it has some tables and zlib's window.
    memory_.limit_bytes = static_cast<std::size_t>(options.limit_bytes) + kTablesBytes;
    decoder_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &trap_, jump_back, drop_message, &memory_,
                                        take_memory, give_memory);
    if (decoder_ != nullptr) info_ = png_create_info_struct(decoder_);
    try {
      if (info_ == nullptr) throw std::bad_alloc();
      start(options);
    } catch (...) {
      png_destroy_read_struct(&decoder_, &info_, nullptr);
      throw;
    }
  }
  ~PngRows() override { png_destroy_read_struct(&decoder_, &info_, nullptr); }
  PngRows(const PngRows&) = delete;
  PngRows& operator=(const PngRows&) = delete;

  void read_row(std::uint8_t* row) override {
    if (whole_.empty()) {
      guard([&] { png_read_row(decoder_, row, nullptr); });
      return;
    }
    const std::int64_t row_bytes = width_ * channels_;
    const auto from = whole_.begin() + next_row_++ * row_bytes;
    std::copy(from, from + row_bytes, row);
  }

 private:
  /// Runs a call of libpng; throws SampleError if it fails. The call must not own anything.
  template <typename Call>
  void guard(Call call) {
    if (setjmp(trap_.back) != 0) {
      if (memory_.refused_by_system) throw std::bad_alloc();
      refuse_image(source_, trap_.message);
    }
    call();
  }

  void start(const DecodeOptions& options) {
    int passes = 1;
    guard([&] {
      png_set_read_fn(decoder_, &source_, read_bytes);
      // Texts, profiles and the like are passed over, because compressed ones inflate without limit.
      png_set_keep_unknown_chunks(decoder_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_chunk_malloc_max(decoder_, kLargestChunkBytes);
      png_set_chunk_cache_max(decoder_, kMostChunks);
      png_read_info(decoder_, info_);
    });
    width_ = png_get_image_width(decoder_, info_);
    height_ = png_get_image_height(decoder_, info_);
    check_image_size(source_.path(), width_, height_);
    const bool interlaced = png_get_interlace_type(decoder_, info_) != PNG_INTERLACE_NONE;
    const std::int64_t rows_at_once = interlaced ? height_ : 1;
    // libpng keeps a few rows of up to 8 bytes a pixel of its own, who reads the rows 16.
    check_image_memory(source_.path(), width_ * 3 * rows_at_once + width_ * 80, options.limit_bytes);
    guard([&] {
      png_set_expand(decoder_);
      png_set_scale_16(decoder_);
      png_set_strip_alpha(decoder_);
      passes = png_set_interlace_handling(decoder_);
      png_read_update_info(decoder_, info_);
    });
    channels_ = png_get_channels(decoder_, info_);
    if ((channels_ != 1 && channels_ != 3) || png_get_bit_depth(decoder_, info_) != 8) {
      refuse_image(source_, "its PNG pixel format is not supported");
    }
    if (interlaced) read_whole(passes);
  }

  /// The rows of an interlaced image are complete only after the last pass.
  void read_whole(int passes) {
    const std::int64_t row_bytes = width_ * channels_;
    whole_.resize(static_cast<std::size_t>(row_bytes * height_));
    std::uint8_t* first = whole_.data();
    guard([&] {
      for (int pass = 0; pass < passes; ++pass) {
        for (std::int64_t y = 0; y < height_; ++y) png_read_row(decoder_, first + y * row_bytes, nullptr);
      }
    });
  }

  ImageSource source_;
  Memory memory_;
  ErrorTrap trap_{};
  png_structp decoder_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<std::uint8_t> whole_;
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageRows> open_png(ImageSource source, const DecodeOptions& options) {
  return std::make_unique<PngRows>(std::move(source), options);
}

}  // namespace penstock
