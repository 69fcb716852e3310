#include "kernels/native/loss_kernels.h"

#include <algorithm>
#include <cmath>

namespace penstock::kernels::native {
namespace {

/// Positions that are worked on together: one cache line of a class's row at a time and more.
constexpr std::int64_t kTile = 64;

std::int64_t tiles_of(const LossShape& shape) {
  return shape.images * ((shape.positions + kTile - 1) / kTile);
}

/// A tile of positions of one image.
struct Tile {
  Tile(const LossShape& shape, std::int64_t index) {
    const std::int64_t per_image = (shape.positions + kTile - 1) / kTile;
    const std::int64_t image = index / per_image;
    const std::int64_t first = index % per_image * kTile;
    count = std::min(kTile, shape.positions - first);
    logits = image * shape.classes * shape.positions + first;
    labels = image * shape.positions + first;
  }
  std::int64_t count;
  std::int64_t logits;  ///< offset of class 0
  std::int64_t labels;
};

/// Softmax of a tile's positions and the sum of their losses.
double tile_loss(const LossShape& shape, const Tile& tile, const float* logits, const std::int32_t* labels,
                 float* probabilities) {
  float largest[kTile];
  float total[kTile];
  std::fill_n(largest, tile.count, -INFINITY);
  std::fill_n(total, tile.count, 0.0F);
  for (std::int64_t k = 0; k < shape.classes; ++k) {
    const float* row = logits + tile.logits + k * shape.positions;
    for (std::int64_t i = 0; i < tile.count; ++i) largest[i] = std::max(largest[i], row[i]);
  }
  double loss = 0;
  for (std::int64_t i = 0; i < tile.count; ++i) {
    if (labels[tile.labels + i] < 0) continue;
    const std::int64_t own = tile.logits + labels[tile.labels + i] * shape.positions + i;
    loss += static_cast<double>(largest[i]) - static_cast<double>(logits[own]);
  }
  for (std::int64_t k = 0; k < shape.classes; ++k) {
    const std::int64_t row = tile.logits + k * shape.positions;
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const float e = std::exp(logits[row + i] - largest[i]);
      probabilities[row + i] = e;
      total[i] += e;
    }
  }
  for (std::int64_t i = 0; i < tile.count; ++i) {
    if (labels[tile.labels + i] >= 0) loss += std::log(static_cast<double>(total[i]));
    total[i] = 1 / total[i];
  }
  for (std::int64_t k = 0; k < shape.classes; ++k) {
    float* row = probabilities + tile.logits + k * shape.positions;
    for (std::int64_t i = 0; i < tile.count; ++i) row[i] *= total[i];
  }
  return loss;
}

}  // namespace

std::shared_ptr<const Kernel> make_cross_entropy(const LossShape& shape) {
  const std::int64_t tiles = tiles_of(shape);
  return make_kernel(
      [shape, tiles](const KernelArgs& args) {
        const auto* labels = static_cast<const std::int32_t*>(args.inputs[1]);
        auto* losses = static_cast<double*>(args.scratch);
#pragma omp parallel for schedule(static)
        for (std::int64_t t = 0; t < tiles; ++t) {
          losses[t] = tile_loss(shape, Tile(shape, t), floats_in(args, 0), labels, floats_out(args, 1));
        }
        double sum = 0;
        for (std::int64_t t = 0; t < tiles; ++t) sum += losses[t];
        floats_out(args, 0)[0] = static_cast<float>(sum / static_cast<double>(shape.mean_count()));
      },
      {{1, 0}}, tiles * static_cast<std::int64_t>(sizeof(double)));
}

std::shared_ptr<const Kernel> make_cross_entropy_backward(const LossShape& shape) {
  const std::int64_t tiles = tiles_of(shape);
  return make_kernel(
      [shape, tiles](const KernelArgs& args) {
        const auto* labels = static_cast<const std::int32_t*>(args.inputs[1]);
        const float* probabilities = floats_in(args, 0);
        float* gradients = floats_out(args, 0);
        const auto count = static_cast<float>(shape.mean_count());
#pragma omp parallel for schedule(static)
        for (std::int64_t t = 0; t < tiles; ++t) {
          const Tile tile(shape, t);
          for (std::int64_t k = 0; k < shape.classes; ++k) {
            const std::int64_t row = tile.logits + k * shape.positions;
            for (std::int64_t i = 0; i < tile.count; ++i) {
              const std::int32_t label = labels[tile.labels + i];
              const float target = label == k ? 1.0F : 0.0F;
              gradients[row + i] = label < 0 ? 0.0F : (probabilities[row + i] - target) / count;
            }
          }
        }
      },
      {{0, 0}});
}

std::shared_ptr<const Kernel> make_count_correct(const LossShape& shape) {
  const std::int64_t tiles = tiles_of(shape);
  return make_kernel([shape, tiles](const KernelArgs& args) {
    const float* logits = floats_in(args, 0);
    const auto* labels = static_cast<const std::int32_t*>(args.inputs[1]);
    std::int64_t correct = args.inputs.size() > 2 ? *static_cast<const std::int32_t*>(args.inputs[2]) : 0;
#pragma omp parallel for schedule(static) reduction(+ : correct)
    for (std::int64_t t = 0; t < tiles; ++t) {
      const Tile tile(shape, t);
      for (std::int64_t i = 0; i < tile.count; ++i) {
        const float* column = logits + tile.logits + i;
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < shape.classes; ++k) {
          if (column[k * shape.positions] > column[best * shape.positions]) best = k;
        }
        if (best == labels[tile.labels + i]) ++correct;
      }
    }
    static_cast<std::int32_t*>(args.outputs[0])[0] = static_cast<std::int32_t>(correct);
  });
}

}  // namespace penstock::kernels::native
