#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/random.h"

namespace penstock {
namespace {

constexpr std::int64_t kTrainSamples = 1 << 20;
constexpr std::int64_t kTestSamples = 1000;
constexpr std::uint64_t kFirstTestSample = std::uint64_t{1} << 31;

/// Signal and noise are added with these weights, whose squares sum to 1.
constexpr float kSignal = 0.6F;
constexpr float kNoise = 0.8F;

/// What a number is drawn for; the `op` of the random stream.
enum Draw : std::uint32_t { kDrawNoise = 0, kDrawLabel = 1, kDrawWave = 2, kDrawLevel = 3 };

/// Labels per pixel are constant in the cells of a grid of this many cells along each axis.
constexpr std::int64_t kCells = 4;

/// A wave of unit variance along one axis: 0.5 to 2.5 turns, any phase.
void make_wave(std::uint32_t turns_bits, std::uint32_t phase_bits, std::int64_t size, float scale,
               float* wave) {
  const double turns = 0.5 + 2.0 * CounterRandom::to_unit(turns_bits);
  const double phase = CounterRandom::to_unit(phase_bits);
  for (std::int64_t i = 0; i < size; ++i) {
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(size);
    wave[i] = static_cast<float>(scale * std::numbers::sqrt2 *
                                 std::sin(2 * std::numbers::pi * (turns * place + phase)));
  }
}

}  // namespace

SyntheticDataset::SyntheticDataset(const std::string& name, const DataGeometry& geometry, std::uint64_t seed,
                                   std::uint64_t first_index, std::int64_t size)
    : Dataset(name, geometry), seed_(seed), first_index_(first_index), size_(size) {}

void SyntheticDataset::read(std::int64_t index, float* image, std::int32_t* labels) const {
  require(index >= 0 && index < size_, "sample index out of range");
  const std::uint64_t sample = first_index_ + static_cast<std::uint64_t>(index);
  add_noise(sample, image);
  if (geometry().per_pixel_labels) {
    add_regions(sample, image, labels);
    return;
  }
  const CounterRandom random(seed_, RandomPurpose::synthetic, sample, kDrawLabel);
  *labels = static_cast<std::int32_t>(random.bits(0) % static_cast<std::uint64_t>(geometry().classes));
  add_wave(*labels, image);
}

void SyntheticDataset::add_noise(std::uint64_t sample, float* image) const {
  // Uniform noise of 256 levels, like an image's bytes: 16 values for one block of random bits.
  static const std::array<float, 256> noise_levels = [] {
    std::array<float, 256> levels{};
    const double deviation = std::sqrt((256.0 * 256.0 - 1.0) / 12.0);
    for (int i = 0; i < 256; ++i) {
      levels[static_cast<std::size_t>(i)] = static_cast<float>(kNoise * (i - 127.5) / deviation);
    }
    return levels;
  }();
  const CounterRandom random(seed_, RandomPurpose::synthetic, sample, kDrawNoise);
  const std::int64_t values = geometry().image_values();
  for (std::int64_t at = 0; at < values; at += 16) {
    const auto words = random.block(static_cast<std::uint64_t>(at / 16));
    const std::int64_t here = std::min<std::int64_t>(16, values - at);
    for (std::int64_t i = 0; i < here; ++i) {
      image[at + i] = noise_levels[words[static_cast<std::size_t>(i / 4)] >> (8 * (i % 4)) & 0xff];
    }
  }
}

void SyntheticDataset::add_wave(std::int32_t label, float* image) const {
  const DataGeometry& g = geometry();
  const std::int64_t depth = g.volumetric() ? g.depth : 1;
  const CounterRandom random(seed_, RandomPurpose::synthetic, static_cast<std::uint64_t>(label), kDrawWave);
  std::vector<float> waves(static_cast<std::size_t>(depth + g.height + g.width));
  float* inward = waves.data();
  float* down = inward + depth;
  float* across = down + g.height;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    const auto bits = random.block(static_cast<std::uint64_t>(2 * c));
    const auto more = random.block(static_cast<std::uint64_t>(2 * c + 1));
    make_wave(bits[0], bits[1], g.height, 1.0F, down);
    make_wave(bits[2], bits[3], g.width, kSignal, across);
    if (g.volumetric()) {
      make_wave(more[0], more[1], depth, 1.0F, inward);
    } else {
      *inward = 1.0F;
    }
    for (std::int64_t z = 0; z < depth; ++z) {
      for (std::int64_t y = 0; y < g.height; ++y) {
        const float height_here = inward[z] * down[y];
        float* row = image + ((c * depth + z) * g.height + y) * g.width;
        for (std::int64_t x = 0; x < g.width; ++x) row[x] += height_here * across[x];
      }
    }
  }
}

void SyntheticDataset::add_regions(std::uint64_t sample, float* image, std::int32_t* labels) const {
  const DataGeometry& g = geometry();
  const std::int64_t depth = g.volumetric() ? g.depth : 1;
  require(g.classes >= 1, "a data set has classes");
  const CounterRandom random(seed_, RandomPurpose::synthetic, sample, kDrawLabel);
  const auto classes = static_cast<std::uint64_t>(g.classes);
  for (std::int64_t z = 0; z < depth; ++z) {
    for (std::int64_t y = 0; y < g.height; ++y) {
      std::int32_t* row = labels + (z * g.height + y) * g.width;
      const std::int64_t row_cell = (z * kCells / depth * kCells + y * kCells / g.height) * kCells;
      for (std::int64_t cell = 0; cell < kCells; ++cell) {
        const auto label = random.bits(static_cast<std::uint64_t>(row_cell + cell)) % classes;
        const std::int64_t begin = (cell * g.width + kCells - 1) / kCells;
        const std::int64_t end = ((cell + 1) * g.width + kCells - 1) / kCells;
        std::fill(row + begin, row + end, static_cast<std::int32_t>(label));
      }
    }
  }
  const std::int64_t pixels = g.pixels();
  std::vector<float> levels(classes);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    // Evenly spaced levels of the signal's deviation, assigned to the classes in a rotated order per channel.
    const CounterRandom turn(seed_, RandomPurpose::synthetic, static_cast<std::uint64_t>(c), kDrawLevel);
    const std::uint64_t shift = c == 0 ? 0 : turn.bits(0) % classes;
    const auto most = static_cast<float>(classes);
    const float spread = classes > 1 ? std::sqrt(12.0F / (most * most - 1)) : 0.0F;
    for (std::uint64_t k = 0; k < classes; ++k) {
      levels[k] = kSignal * spread * (static_cast<float>((k + shift) % classes) - (most - 1) / 2);
    }
    float* plane = image + c * pixels;
    for (std::int64_t i = 0; i < pixels; ++i) plane[i] += levels[static_cast<std::size_t>(labels[i])];
  }
}

std::int64_t SyntheticDataset::working_bytes() const {
  return 4 * (geometry().depth + 1 + geometry().height + geometry().width + geometry().classes);
}

DataSplits open_synthetic(const DataRequest& request) {
  DataGeometry geometry;
  geometry.channels = request.channels == 0 ? 3 : request.channels;
  geometry.height = request.image_size == 0 ? 224 : request.image_size;
  geometry.width = geometry.height;
  geometry.classes = request.classes == 0 ? 10 : request.classes;
  geometry.per_pixel_labels = request.per_pixel_labels;
  if (request.volumetric) geometry.depth = request.depth == 0 ? geometry.height : request.depth;
  DataSplits splits;
  splits.train =
      std::make_unique<SyntheticDataset>("synthetic (train)", geometry, request.seed, 0, kTrainSamples);
  splits.test = std::make_unique<SyntheticDataset>("synthetic (test)", geometry, request.seed,
                                                   kFirstTestSample, kTestSamples);
  return splits;
}

}  // namespace penstock
