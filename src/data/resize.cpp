#include "data/resize.h"

#include <algorithm>
#include <cmath>

namespace penstock {

RowResizer::Axis::Axis(std::int64_t in_size, std::int64_t out_size, double scale, double offset) {
  const double reach = std::max(scale, 1.0);
  taps = static_cast<std::int64_t>(std::ceil(2 * reach)) + 1;
  first.resize(static_cast<std::size_t>(out_size));
  count.resize(static_cast<std::size_t>(out_size));
  weight.assign(static_cast<std::size_t>(out_size * taps), 0.0F);
  for (std::int64_t i = 0; i < out_size; ++i) {
    const double centre = offset + (static_cast<double>(i) + 0.5) * scale;
    const auto begin =
        std::clamp(static_cast<std::int64_t>(std::floor(centre - reach)), std::int64_t{0}, in_size - 1);
    const auto end = std::clamp(static_cast<std::int64_t>(std::ceil(centre + reach)), begin + 1,
                                std::min(in_size, begin + taps));
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      sum += std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - centre) / reach);
    }
    for (std::int64_t k = begin; k < end; ++k) {
      const double share = std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - centre) / reach);
      weight[static_cast<std::size_t>(i * taps + k - begin)] = static_cast<float>(share / sum);
    }
    first[static_cast<std::size_t>(i)] = begin;
    count[static_cast<std::size_t>(i)] = end - begin;
  }
}

double RowResizer::fit_scale(std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
                             std::int64_t out_width) {
  return std::min(static_cast<double>(in_height) / static_cast<double>(out_height),
                  static_cast<double>(in_width) / static_cast<double>(out_width));
}

RowResizer::RowResizer(std::int64_t channels, std::int64_t in_height, std::int64_t in_width,
                       std::int64_t out_height, std::int64_t out_width, float* out)
    : channels_(channels),
      in_width_(in_width),
      out_height_(out_height),
      out_width_(out_width),
      scale_(fit_scale(in_height, in_width, out_height, out_width)),
      down_(in_height, out_height, scale_,
            (static_cast<double>(in_height) - scale_ * static_cast<double>(out_height)) / 2),
      across_(in_width, out_width, scale_,
              (static_cast<double>(in_width) - scale_ * static_cast<double>(out_width)) / 2),
      row_(static_cast<std::size_t>(channels * out_width)),
      out_(out) {
  std::fill(out, out + channels * out_height * out_width, 0.0F);
}

bool RowResizer::add_row(const float* row) {
  const std::int64_t y = next_row_++;
  const auto first = [&](std::int64_t i) { return down_.first[static_cast<std::size_t>(i)]; };
  const auto end = [&](std::int64_t i) { return first(i) + down_.count[static_cast<std::size_t>(i)]; };
  while (first_open_ < out_height_ && end(first_open_) <= y) ++first_open_;
  if (first_open_ == out_height_) return false;
  if (first(first_open_) > y) return true;

  for (std::int64_t c = 0; c < channels_; ++c) {
    const float* in = row + c * in_width_;
    for (std::int64_t x = 0; x < out_width_; ++x) {
      const auto at = static_cast<std::size_t>(x);
      const float* weight = across_.weight.data() + x * across_.taps;
      const float* from = in + across_.first[at];
      float sum = 0;
      for (std::int64_t k = 0; k < across_.count[at]; ++k) sum += weight[k] * from[k];
      row_[static_cast<std::size_t>(c * out_width_ + x)] = sum;
    }
  }
  for (std::int64_t i = first_open_; i < out_height_ && first(i) <= y; ++i) {
    if (end(i) <= y) continue;
    const float weight = down_.weight[static_cast<std::size_t>(i * down_.taps + y - first(i))];
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float* from = row_.data() + c * out_width_;
      float* to = out_ + (c * out_height_ + i) * out_width_;
      for (std::int64_t x = 0; x < out_width_; ++x) to[x] += weight * from[x];
    }
  }
  return end(out_height_ - 1) > y + 1;
}

std::int64_t RowResizer::working_bytes(std::int64_t channels, std::int64_t in_size, std::int64_t out_size) {
  const std::int64_t taps = 2 * (in_size / out_size + 1) + 1;
  const std::int64_t axis_bytes = out_size * (taps * 4 + 16);
  return 2 * axis_bytes + channels * out_size * 4;
}

}  // namespace penstock
