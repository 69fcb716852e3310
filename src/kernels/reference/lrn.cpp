#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// One position of one image: its channels and the sums over the windows around them.
struct Column {
  /// k + alpha / size * sum of squares over the channels from c - size / 2 on.
  double base(std::int64_t c) const {
    double squares = 0;
    const std::int64_t first = c - attrs.size / 2;
    for (std::int64_t i = std::max<std::int64_t>(first, 0); i < std::min(first + attrs.size, channels); ++i) {
      squares += static_cast<double>(x[i * stride]) * x[i * stride];
    }
    return attrs.k + static_cast<double>(attrs.alpha) / static_cast<double>(attrs.size) * squares;
  }

  const ir::LrnAttrs& attrs;
  const float* x;
  std::int64_t channels, stride;
};

/// Calls visit(offset of the first channel) for each position of each image.
template <typename Visit>
void for_each_column(const ir::Shape& shape, Visit&& visit) {
  const std::int64_t plane = shape.elements(2, shape.rank());
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t i = 0; i < plane; ++i) visit(n * shape[1] * plane + i);
  }
}

}  // namespace

Body lrn(const Described& d) {
  return [shape = d.in[0], attrs = d.attrs<ir::LrnAttrs>()](const KernelArgs& args) {
    const std::int64_t plane = shape.elements(2, shape.rank());
    for_each_column(shape, [&](std::int64_t start) {
      const Column column{attrs, floats_in(args, 0) + start, shape[1], plane};
      for (std::int64_t c = 0; c < shape[1]; ++c) {
        floats_out(args, 0)[start + c * plane] = static_cast<float>(
            column.x[c * plane] * std::pow(column.base(c), -static_cast<double>(attrs.beta)));
      }
    });
  };
}

Body lrn_backward(const Described& d) {
  return [shape = d.in[0], attrs = d.attrs<ir::LrnAttrs>()](const KernelArgs& args) {
    const std::int64_t plane = shape.elements(2, shape.rank());
    const double beta = attrs.beta;
    for_each_column(shape, [&](std::int64_t start) {
      const Column column{attrs, floats_in(args, 0) + start, shape[1], plane};
      const float* dy = floats_in(args, 1) + start;
      for (std::int64_t c = 0; c < shape[1]; ++c) {
        // Channel c is in the windows of the channels from c - (size - 1) / 2 on.
        const std::int64_t first = c - (attrs.size - 1) / 2;
        double spread = 0;
        for (std::int64_t i = std::max<std::int64_t>(first, 0); i < std::min(first + attrs.size, shape[1]);
             ++i) {
          spread +=
              static_cast<double>(dy[i * plane]) * column.x[i * plane] * std::pow(column.base(i), -beta - 1);
        }
        const double direct = dy[c * plane] * std::pow(column.base(c), -beta);
        const double factor = 2.0 * attrs.alpha * beta / static_cast<double>(attrs.size);
        floats_out(args, 0)[start + c * plane] =
            static_cast<float>(direct - factor * column.x[c * plane] * spread);
      }
    });
  };
}

}  // namespace penstock::kernels::reference
