#include <png.h>

#include <csetjmp>
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

class PngRows final : public ImageRows {
 public:
  PngRows(std::string path, ImageFile file, const DecodeOptions& options)
      : path_(std::move(path)), file_(std::move(file)) {
    decoder_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &trap_, jump_back, drop_message);
    if (decoder_ != nullptr) info_ = png_create_info_struct(decoder_);
    try {
      if (info_ == nullptr) refuse_image(path_, "libpng cannot start");
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
    if (setjmp(trap_.back) != 0) refuse_image(path_, trap_.message, file_.get());
    call();
  }

  void start(const DecodeOptions& options) {
    int passes = 1;
    guard([&] {
      png_init_io(decoder_, file_.get());
      png_read_info(decoder_, info_);
    });
    width_ = png_get_image_width(decoder_, info_);
    height_ = png_get_image_height(decoder_, info_);
    check_image_size(path_, width_, height_);
    const bool interlaced = png_get_interlace_type(decoder_, info_) != PNG_INTERLACE_NONE;
    const std::int64_t rows_at_once = interlaced ? height_ : 1;
    // libpng keeps a few rows of up to 8 bytes a pixel of its own.
    check_image_memory(path_, width_ * 3 * rows_at_once + width_ * 64, options.limit_bytes);
    guard([&] {
      png_set_expand(decoder_);
      png_set_scale_16(decoder_);
      png_set_strip_alpha(decoder_);
      passes = png_set_interlace_handling(decoder_);
      png_read_update_info(decoder_, info_);
    });
    channels_ = png_get_channels(decoder_, info_);
    if ((channels_ != 1 && channels_ != 3) || png_get_bit_depth(decoder_, info_) != 8) {
      refuse_image(path_, "its PNG pixel format is not supported");
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

  std::string path_;
  ImageFile file_;
  ErrorTrap trap_{};
  png_structp decoder_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<std::uint8_t> whole_;
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageRows> open_png(const std::string& path, ImageFile file, const DecodeOptions& options) {
  return std::make_unique<PngRows>(path, std::move(file), options);
}

}  // namespace penstock
