#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock {
namespace {

/// Fills values[0, count) four at a time; make(block) gives the four of a block.
template <typename Make>
void fill_blocks(float* values, std::int64_t count, const Make& make) {
  const std::int64_t blocks = (count + 3) / 4;
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::array<float, 4> four = make(static_cast<std::uint64_t>(block));
    std::copy_n(four.begin(), std::min<std::int64_t>(4, count - 4 * block), values + 4 * block);
  }
}

}  // namespace

std::array<float, 4> CounterRandom::normals(std::uint64_t index) const {
  const auto words = block(index);
  std::array<float, 4> result{};
  for (std::size_t pair = 0; pair < 2; ++pair) {
    const float radius =
        std::sqrt(-2.0F * std::log((static_cast<float>(words[2 * pair] >> 8) + 0.5F) * 0x1p-24F));
    const float angle = 2.0F * std::numbers::pi_v<float> * to_unit(words[2 * pair + 1]);
    result[2 * pair] = radius * std::cos(angle);
    result[2 * pair + 1] = radius * std::sin(angle);
  }
  return result;
}

void CounterRandom::fill_uniform(float* values, std::int64_t count, float scale) const {
  fill_blocks(values, count, [&](std::uint64_t index) {
    std::array<float, 4> four{};
    const auto words = block(index);
    for (std::size_t i = 0; i < 4; ++i) four[i] = (2.0F * to_unit(words[i]) - 1.0F) * scale;
    return four;
  });
}

void CounterRandom::fill_normal(float* values, std::int64_t count, float scale) const {
  fill_blocks(values, count, [&](std::uint64_t index) {
    std::array<float, 4> four = normals(index);
    for (float& value : four) value *= scale;
    return four;
  });
}

std::uint32_t name_key(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace penstock
