#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

// libjpeg's headers need the types above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "data/image_file.h"

namespace penstock {
namespace {

constexpr int kMostScans = 200;

/// libjpeg reports errors by a call that must not return: it jumps back to the guard() around the call of
/// libjpeg.
struct ErrorTrap {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void jump_back(j_common_ptr decoder) {
  auto* trap = reinterpret_cast<ErrorTrap*>(decoder->err);
  decoder->err->format_message(decoder, trap->message);
  std::longjmp(trap->back, 1);
}

/// A file that ends early is only a warning to libjpeg, which then makes up the rest.
void note_message(j_common_ptr decoder, int level) {
  const int code = decoder->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) jump_back(decoder);
}

void drop_message(j_common_ptr /*decoder*/) {}

/// A progressive file may hold scans without end, each of which costs a pass over the image.
void limit_scans(j_common_ptr decoder) {
  const auto* reader = reinterpret_cast<j_decompress_ptr>(decoder);
  if (decoder->is_decompressor != 0 && reader->input_scan_number > kMostScans) {
    ERREXIT(decoder, JERR_BAD_PROGRESSION);
  }
}

/// Feeds libjpeg from an ImageSource.
struct SourceManager {
  jpeg_source_mgr manager{};
  ImageSource* source = nullptr;
  std::array<JOCTET, 16384> buffer{};
};

void start_source(j_decompress_ptr /*decoder*/) {}
void end_source(j_decompress_ptr /*decoder*/) {}

boolean fill_buffer(j_decompress_ptr decoder) {
  auto* manager = reinterpret_cast<SourceManager*>(decoder->src);
  const std::int64_t got =
      manager->source->read(manager->buffer.data(), static_cast<std::int64_t>(manager->buffer.size()));
  // Whoever catches this asks the source whether the file ended or the disk failed.
  if (got == 0) ERREXIT(decoder, JERR_INPUT_EOF);
  manager->manager.next_input_byte = manager->buffer.data();
  manager->manager.bytes_in_buffer = static_cast<std::size_t>(got);
  return TRUE;
}

void skip_bytes(j_decompress_ptr decoder, long count) {
  if (count <= 0) return;
  auto* manager = reinterpret_cast<SourceManager*>(decoder->src);
  const long here = std::min(count, static_cast<long>(manager->manager.bytes_in_buffer));
  manager->manager.next_input_byte += here;
  manager->manager.bytes_in_buffer -= static_cast<std::size_t>(here);
  manager->source->skip(count - here);
}

class JpegRows final : public ImageRows {
 public:
  JpegRows(ImageSource source, const DecodeOptions& options) : source_(std::move(source)) {
    manager_.source = &source_;
    manager_.manager.init_source = start_source;
    manager_.manager.fill_input_buffer = fill_buffer;
    manager_.manager.skip_input_data = skip_bytes;
    manager_.manager.resync_to_restart = jpeg_resync_to_restart;
    manager_.manager.term_source = end_source;
    decoder_.err = jpeg_std_error(&trap_.manager);
    trap_.manager.error_exit = jump_back;
    trap_.manager.emit_message = note_message;
    trap_.manager.output_message = drop_message;
    progress_.progress_monitor = limit_scans;
    try {
      start(options);
    } catch (...) {
      jpeg_destroy_decompress(&decoder_);
      throw;
    }
  }
  ~JpegRows() override { jpeg_destroy_decompress(&decoder_); }
  JpegRows(const JpegRows&) = delete;
  JpegRows& operator=(const JpegRows&) = delete;

  void read_row(std::uint8_t* row) override {
    JSAMPROW target = cmyk_.empty() ? row : cmyk_.data();
    guard([&] { jpeg_read_scanlines(&decoder_, &target, 1); });
    if (!cmyk_.empty()) cmyk_to_rgb(row);
  }

 private:
  /// Runs a call of libjpeg; throws SampleError if it fails. The call must not own anything.
  template <typename Call>
  void guard(Call call) {
    if (setjmp(trap_.back) != 0) {
      if (trap_.manager.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
      refuse_image(source_, trap_.message);
    }
    call();
  }

  void start(const DecodeOptions& options) {
    guard([&] {
      jpeg_create_decompress(&decoder_);
      decoder_.progress = &progress_;
      decoder_.mem->max_memory_to_use = static_cast<long>(options.limit_bytes);
      decoder_.src = &manager_.manager;
      jpeg_read_header(&decoder_, TRUE);
    });
    check_image_size(source_.path(), decoder_.image_width, decoder_.image_height);
    // Row by row libjpeg keeps a few rows of blocks.
    std::int64_t needed_bytes = std::int64_t{64} * 4 * decoder_.image_width;
    if (jpeg_has_multiple_scans(&decoder_) != 0) {
      for (int i = 0; i < decoder_.num_components; ++i) {
        const jpeg_component_info& component = decoder_.comp_info[i];
        needed_bytes += std::int64_t{component.width_in_blocks} * component.height_in_blocks *
                        static_cast<std::int64_t>(sizeof(JBLOCK));
      }
    }
    check_image_memory(source_.path(), needed_bytes, options.limit_bytes);
    choose_output(options.shorter_side);
    guard([&] { jpeg_start_decompress(&decoder_); });
    width_ = decoder_.output_width;
    height_ = decoder_.output_height;
    channels_ = decoder_.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (decoder_.out_color_space == JCS_CMYK) cmyk_.resize(static_cast<std::size_t>(width_) * 4);
  }

  void choose_output(std::int64_t shorter_side) {
    const bool inks = decoder_.jpeg_color_space == JCS_CMYK || decoder_.jpeg_color_space == JCS_YCCK;
    const bool grey = decoder_.jpeg_color_space == JCS_GRAYSCALE;
    decoder_.out_color_space = inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    const std::int64_t side = std::min(decoder_.image_width, decoder_.image_height);
    decoder_.scale_num = 1;
    decoder_.scale_denom = 1;
    while (shorter_side > 0 && decoder_.scale_denom < 8 &&
           side / (2 * decoder_.scale_denom) >= shorter_side) {
      decoder_.scale_denom *= 2;
    }
  }

  void cmyk_to_rgb(std::uint8_t* row) const {
    // Adobe's programs store inks inverted: 255 is no ink.
    const int flip = decoder_.saw_Adobe_marker != 0 ? 0 : 255;
    for (std::int64_t x = 0; x < width_; ++x) {
      const std::uint8_t* inks = cmyk_.data() + 4 * x;
      const int black = inks[3] ^ flip;
      for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<std::uint8_t>((inks[c] ^ flip) * black / 255);
    }
  }

  ImageSource source_;
  SourceManager manager_;
  ErrorTrap trap_{};
  jpeg_decompress_struct decoder_{};
  jpeg_progress_mgr progress_{};
  std::vector<std::uint8_t> cmyk_;
};

}  // namespace

std::unique_ptr<ImageRows> open_jpeg(ImageSource source, const DecodeOptions& options) {
  return std::make_unique<JpegRows>(std::move(source), options);
}

}  // namespace penstock
