#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

/// Resizes an image that arrives row by row, so that the source is never whole in memory: its shorter side is
/// scaled to fit, the longer one cropped about the centre. Bilinear; where it shrinks, the filter widens with
/// the scale (antialias), so that every source pixel inside the crop counts. Equal sizes give the same values
/// exactly.
class RowResizer {
 public:
  /// Writes to `out` [channels, out_height, out_width], which must live until the last row.
  RowResizer(std::int64_t channels, std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
             std::int64_t out_width, float* out);

  /// Takes the next source row, [channels, in_width]. Returns whether further rows still matter.
  bool add_row(const float* row);

  /// What one resizer takes of memory, at most.
  static std::int64_t working_bytes(std::int64_t channels, std::int64_t in_size, std::int64_t out_size);

 private:
  /// For each output place along one axis, the source places it is made of and their weights, which sum to 1.
  struct Axis {
    Axis(std::int64_t in_size, std::int64_t out_size, double scale, double offset);
    std::int64_t taps;
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> count;
    std::vector<float> weight;
  };
  static double fit_scale(std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
                          std::int64_t out_width);

  std::int64_t channels_;
  std::int64_t in_width_;
  std::int64_t out_height_;
  std::int64_t out_width_;
  double scale_;
  Axis down_;
  Axis across_;
  std::vector<float> row_;
  float* out_;
  std::int64_t next_row_ = 0;
  std::int64_t first_open_ = 0;
};

}  // namespace penstock
