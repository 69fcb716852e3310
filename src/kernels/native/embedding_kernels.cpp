#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ir/rotary.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::native {
namespace {

void copy_floats(const float* from, std::int64_t count, float* to) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}
void add_floats(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// What a token outside the vocabulary would read is not there.
void check_tokens(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary) {
  const std::int32_t* last = tokens + count;
  const std::int32_t* wrong =
      std::find_if(tokens, last, [=](std::int32_t token) { return token >= vocabulary; });
  if (wrong == last) return;
  throw UserError(
      fmt::format("token {} is outside the network's vocabulary of {}: take the tokenizer that the "
                  "network was made for",
                  *wrong, vocabulary));
}

}  // namespace

std::shared_ptr<const Kernel> make_embedding(const ShapeList& in) {
  const std::int64_t count = in[0].elements();
  const std::int64_t sequence = in[0][in[0].rank() - 1];
  const std::int64_t vocabulary = in[1][0];
  const std::int64_t width = in[1][1];
  return make_kernel([=](const KernelArgs& args) {
    const auto* tokens = static_cast<const std::int32_t*>(args.inputs[0]);
    const float* weights = floats_in(args, 1);
    const float* positions = floats_in(args, 2);
    float* y = floats_out(args, 0);
    check_tokens(tokens, count, vocabulary);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
      float* row = y + i * width;
      if (tokens[i] < 0) {
        std::fill_n(row, width, 0.0F);
      } else {
        copy_floats(weights + tokens[i] * width, width, row);
      }
      if (positions != nullptr) add_floats(positions + i % sequence * width, width, row);
    }
  });
}

std::shared_ptr<const Kernel> make_embedding_backward(const ir::EmbeddingAttrs& attrs, const ShapeList& in,
                                                      const ir::Shape& dw) {
  const std::int64_t count = in[0].elements();
  const std::int64_t rows = dw[0];
  const std::int64_t width = dw[1];
  const std::int64_t begin = attrs.begin;
  return make_kernel(
      [=](const KernelArgs& args) {
        const auto* tokens = static_cast<const std::int32_t*>(args.inputs[0]);
        const float* dy = floats_in(args, 1);
        const float* base = floats_in(args, 2);
        float* gradient = floats_out(args, 0);
#pragma omp parallel
        {
          const std::int64_t threads = omp_get_num_threads();
          const std::int64_t me = omp_get_thread_num();
          const std::int64_t first = rows * me / threads * width;
          const std::int64_t last = rows * (me + 1) / threads * width;
          if (base == nullptr) {
            std::fill(gradient + first, gradient + last, 0.0F);
          } else if (base != gradient) {
            copy_floats(base + first, last - first, gradient + first);
          }
#pragma omp barrier
          // Each row belongs to one thread, which adds to it in the order of the tokens.
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = tokens[i] - begin;
            if (tokens[i] < 0 || row < 0 || row >= rows || row % threads != me) continue;
            add_floats(dy + i * width, width, gradient + row * width);
          }
        }
      },
      {{0, 2}});
}

std::shared_ptr<const Kernel> make_position_backward(const ir::Shape& dy, const ir::Shape& dp) {
  const std::int64_t width = dp[1];
  const std::int64_t positions = dp[0];
  const std::int64_t sequence = dy[dy.rank() - 2];
  const std::int64_t samples = dy.elements(0, dy.rank() - 2);
  return make_kernel([=](const KernelArgs& args) {
    const float* gradients = floats_in(args, 0);
    float* out = floats_out(args, 0);
#pragma omp parallel for schedule(static)
    for (std::int64_t position = 0; position < positions; ++position) {
      float* row = out + position * width;
      std::fill_n(row, width, 0.0F);
      if (position >= sequence) continue;
      for (std::int64_t sample = 0; sample < samples; ++sample)
        add_floats(gradients + (sample * sequence + position) * width, width, row);
    }
  });
}

std::shared_ptr<const Kernel> make_rotary(const ir::RotaryAttrs& attrs, const ir::Shape& x) {
  const std::int64_t sequence = x[x.rank() - 2];
  const std::int64_t row_width = x[x.rank() - 1];
  const std::int64_t rows = x.elements(0, x.rank() - 1);
  const std::int64_t pairs = attrs.rotated / 2;
  // Where the two of a pair lie: side by side, or half the rotated part apart.
  const std::int64_t pair_step = attrs.interleaved ? 2 : 1;
  const std::int64_t partner = attrs.interleaved ? 1 : pairs;
  return make_kernel(
      [=](const KernelArgs& args) {
        const float* from = floats_in(args, 0);
        float* to = floats_out(args, 0);
        auto* cosines = static_cast<float*>(args.scratch);
        float* sines = cosines + sequence * pairs;
#pragma omp parallel
        {
#pragma omp for schedule(static)
          for (std::int64_t position = 0; position < sequence; ++position) {
            for (std::int64_t pair = 0; pair < pairs; ++pair) {
              const double angle = static_cast<double>(position) * ir::rotary_frequency(attrs, pair);
              cosines[position * pairs + pair] = static_cast<float>(std::cos(angle));
              sines[position * pairs + pair] =
                  static_cast<float>(attrs.inverse ? -std::sin(angle) : std::sin(angle));
            }
          }
#pragma omp for schedule(static)
          for (std::int64_t row = 0; row < rows; ++row) {
            const float* cosine = cosines + row % sequence * pairs;
            const float* sine = sines + row % sequence * pairs;
            for (std::int64_t head = 0; head < row_width; head += attrs.head_width) {
              const float* x_head = from + row * row_width + head;
              float* y_head = to + row * row_width + head;
              for (std::int64_t pair = 0; pair < pairs; ++pair) {
                const float a = x_head[pair * pair_step];
                const float b = x_head[pair * pair_step + partner];
                y_head[pair * pair_step] = a * cosine[pair] - b * sine[pair];
                y_head[pair * pair_step + partner] = b * cosine[pair] + a * sine[pair];
              }
              for (std::int64_t i = attrs.rotated; i < attrs.head_width; ++i) y_head[i] = x_head[i];
            }
          }
        }
      },
      {{0, 0}}, 2 * sequence * pairs * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace penstock::kernels::native
