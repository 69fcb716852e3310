#include <cstdio>

// libjpeg's header needs the types above.
#include <jpeglib.h>
#include <png.h>

#include "data/files.h"

namespace penstock::testing {

void write_png(const std::string& path, const Picture& picture, const PngOptions& options) {
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  const int type = options.colour_type < 0 ? kTypes[picture.channels] : options.colour_type;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr, "cannot write a picture");
  png_structp encoder = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(encoder);
  png_init_io(encoder, file);
  png_set_IHDR(encoder, info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), options.bit_depth, type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (type == PNG_COLOR_TYPE_PALETTE) {
    const png_color palette[] = {{0, 0, 0}, {10, 20, 30}, {200, 100, 50}};
    png_set_PLTE(encoder, info, palette, 3);
    const png_byte alpha[] = {255, 0, 128};
    png_set_tRNS(encoder, info, alpha, 3, nullptr);
  }
  png_write_info(encoder, info);
  const int row_bytes = picture.width * picture.channels * (options.bit_depth == 16 ? 2 : 1);
  std::vector<png_bytep> rows;
  for (int y = 0; y < picture.height; ++y) {
    rows.push_back(const_cast<png_bytep>(picture.bytes.data()) + static_cast<std::ptrdiff_t>(y) * row_bytes);
  }
  png_write_image(encoder, rows.data());
  png_write_end(encoder, info);
  png_destroy_write_struct(&encoder, &info);
  std::fclose(file);
}

void write_jpeg(const std::string& path, const Picture& picture, JpegKind kind) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr, "cannot write a picture");
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_width = static_cast<JDIMENSION>(picture.width);
  encoder.image_height = static_cast<JDIMENSION>(picture.height);
  encoder.input_components = picture.channels;
  encoder.in_color_space = kind == JpegKind::cmyk  ? JCS_CMYK
                           : picture.channels == 1 ? JCS_GRAYSCALE
                                                   : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 100, TRUE);
  if (kind == JpegKind::progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    const std::size_t at = static_cast<std::size_t>(encoder.next_scanline) * encoder.image_width *
                           static_cast<std::size_t>(picture.channels);
    JSAMPROW row = const_cast<JSAMPROW>(picture.bytes.data() + at);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::fclose(file);
}

}  // namespace penstock::testing
