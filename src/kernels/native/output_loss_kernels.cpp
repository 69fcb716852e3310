#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/native/simd/text_table.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::native {
namespace {

/// Logits that exist at a time. Sums of gradients over tokens are made kTokens at a stretch: a multiple of no
/// consequence to the order, which depends on the shapes alone.
constexpr std::int64_t kTokens = 1024;
constexpr std::int64_t kColumns = 1536;

std::int64_t parts_of(std::int64_t count, std::int64_t part) {
  return (count + part - 1) / part;
}

struct OutputLayer {
  OutputLayer(const ir::OutputLossAttrs& attrs, const ShapeList& in)
      : tokens(in[0].elements(0, in[0].rank() - 1)),
        width(in[1][1]),
        vocabulary(in[1][0]),
        smoothing(attrs.smoothing) {
    token_step = parts_of(tokens, parts_of(tokens, kTokens));
  }
  std::int64_t tokens, width, vocabulary, token_step;
  float smoothing;

  std::int64_t logit_floats() const { return (token_step * std::min(vocabulary, kColumns) + 15) / 16 * 16; }
  std::int64_t product_floats() const {
    const auto& simd = text_simd();
    const std::int64_t columns = std::min(vocabulary, kColumns);
    return std::max({simd.product_floats(token_step, columns, width),
                     simd.product_floats(token_step, width, columns),
                     simd.product_floats(columns, width, token_step)});
  }

  /// logits[tokens from `token` on, columns from `column` on] = x w^T.
  LogitPart part(const KernelArgs& args, std::int64_t token, std::int64_t column, std::int64_t end) const {
    LogitPart made;
    made.rows = std::min(token_step, tokens - token);
    made.columns = std::min(kColumns, end - column);
    made.begin = column;
    made.vocabulary = vocabulary;
    made.logits = static_cast<float*>(args.scratch);
    made.labels = static_cast<const std::int32_t*>(args.inputs[2]) + token;
    made.smoothing = smoothing;
    Product product;
    product.m = made.rows;
    product.n = made.columns;
    product.k = width;
    product.a = {floats_in(args, 0) + token * width, width, 1};
    product.b = {floats_in(args, 1) + column * width, 1, width};
    product.c = made.logits;
    product.c_row = made.columns;
    product.scratch = made.logits + logit_floats();
    text_simd().product(product);
    return made;
  }

  /// Tokens whose labels count; at least 1, because it is divided by.
  std::int64_t counted(const KernelArgs& args) const {
    const auto* labels = static_cast<const std::int32_t*>(args.inputs[2]);
    const auto count = std::count_if(labels, labels + tokens, [](std::int32_t label) { return label >= 0; });
    return std::max<std::int64_t>(1, count);
  }
};

}  // namespace

std::shared_ptr<const Kernel> make_linear_cross_entropy(const ir::OutputLossAttrs& attrs,
                                                        const ShapeList& in) {
  const OutputLayer layer(attrs, in);
  const std::int64_t sums_floats = 4 * layer.tokens;
  const std::int64_t floats = layer.logit_floats() + layer.product_floats();
  return make_kernel(
      [=](const KernelArgs& args) {
        float* sums_at = static_cast<float*>(args.scratch) + floats;
        LogitSums sums{sums_at, sums_at + layer.tokens, sums_at + 2 * layer.tokens,
                       sums_at + 3 * layer.tokens};
        std::fill_n(sums.largest, layer.tokens, -std::numeric_limits<float>::infinity());
        std::fill_n(sums.sum, 3 * layer.tokens, 0.0F);
        for (std::int64_t column = 0; column < layer.vocabulary; column += kColumns) {
          for (std::int64_t token = 0; token < layer.tokens; token += layer.token_step) {
            const LogitPart part = layer.part(args, token, column, layer.vocabulary);
            text_simd().add_logits(
                part, {sums.largest + token, sums.sum + token, sums.own + token, sums.total + token});
          }
        }
        const auto* labels = static_cast<const std::int32_t*>(args.inputs[2]);
        const auto smoothing = static_cast<double>(layer.smoothing);
        double loss = 0;
        for (std::int64_t t = 0; t < layer.tokens; ++t) {
          const double logsum = sums.largest[t] + std::log(static_cast<double>(sums.sum[t]));
          floats_out(args, 1)[t] = static_cast<float>(logsum);
          if (labels[t] < 0) continue;
          const double mean = static_cast<double>(sums.total[t]) / static_cast<double>(layer.vocabulary);
          loss += logsum - (1 - smoothing) * static_cast<double>(sums.own[t]) - smoothing * mean;
        }
        floats_out(args, 0)[0] = static_cast<float>(loss / static_cast<double>(layer.counted(args)));
      },
      {}, (floats + sums_floats) * 4);
}

std::shared_ptr<const Kernel> make_linear_cross_entropy_backward(const ir::OutputLossAttrs& attrs,
                                                                 const ShapeList& in, std::int64_t rows) {
  const OutputLayer layer(attrs, in);
  const std::int64_t begin = attrs.begin;
  return make_kernel(
      [=](const KernelArgs& args) {
        const float* logsum = floats_in(args, 3);
        const float* dx_before = floats_in(args, 4);
        float* dx = floats_out(args, 0);
        if (dx_before != nullptr && dx_before != dx) std::copy_n(dx_before, layer.tokens * layer.width, dx);
        const auto scale = static_cast<float>(1.0 / static_cast<double>(layer.counted(args)));
        for (std::int64_t column = begin; column < begin + rows; column += kColumns) {
          for (std::int64_t token = 0; token < layer.tokens; token += layer.token_step) {
            const LogitPart part = layer.part(args, token, column, begin + rows);
            text_simd().logit_gradients(part, logsum + token, scale);
            Product product;
            product.scratch = part.logits + layer.logit_floats();
            product.m = part.rows;
            product.n = layer.width;
            product.k = part.columns;
            product.a = {part.logits, part.columns, 1};
            product.b = {floats_in(args, 1) + column * layer.width, layer.width, 1};
            product.c = dx + token * layer.width;
            product.c_row = layer.width;
            product.add = dx_before != nullptr || column > begin;
            text_simd().product(product);
            product.m = part.columns;
            product.k = part.rows;
            product.a = {part.logits, 1, part.columns};
            product.b = {floats_in(args, 0) + token * layer.width, layer.width, 1};
            product.c = floats_out(args, 1) + (column - begin) * layer.width;
            product.add = token > 0;
            text_simd().product(product);
          }
        }
      },
      {{0, 4}}, (layer.logit_floats() + layer.product_floats()) * 4);
}

}  // namespace penstock::kernels::native
