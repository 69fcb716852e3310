#pragma once

#include "support/classifier_builder.h"

namespace penstock::testing {

/// A vector an image behind one of each op that layouts or slices of the batch meet in a way of its own:
/// blocked and plain layouts, odd channel counts, batch norm with and without what is fused into it,
/// residuals, pooling with indices, concat, a transposed convolution, dropout, upsampling.
inline Value varied_trunk(ClassifierBuilder& b) {
  auto x = b.relu(
      b.batch_norm("bn1", b.conv("conv1", b.images(), 16, {.kernel = {3}, .stride = {2}, .bias = false})));
  x = b.max_pool(x, {.kernel = {3}, .stride = {2}, .padding = {1}});
  const auto shortcut = b.batch_norm("bn2", b.conv("conv2", x, 32, {.kernel = {1}, .bias = false}));
  auto y = b.relu(b.batch_norm("bn3", b.conv("conv3", x, 24, {.kernel = {3}, .padding = {1}})));
  y = b.batch_norm("bn4", b.conv("conv4", y, 32, {.kernel = {3}, .padding = {1}, .groups = 2}));
  x = b.relu(b.add(y, shortcut));
  const auto odd = b.relu(b.conv("conv5", x, 5, {.kernel = {3}, .padding = {1}}));
  x = b.concat({x, odd, b.conv("conv6", x, 8, {.kernel = {1}})});
  x = b.conv_transpose("up", x, 12, {.kernel = {2}, .stride = {2}});
  x = b.dropout(b.tanh(x), 0.25F);
  x = b.upsample(b.avg_pool(x, {}), {2}, true);
  x = b.apply("silu", {b.batch_norm("bn5", x)});
  return b.flatten(b.global_avg_pool(x));
}

}  // namespace penstock::testing
