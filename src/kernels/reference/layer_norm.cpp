#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// [..., D] as rows of D elements.
struct Rows {
  explicit Rows(const ir::Shape& shape)
      : rows(shape.elements(0, shape.rank() - 1)), width(shape[shape.rank() - 1]) {}
  std::int64_t rows, width;
};

double reciprocal_deviation(double variance, const ir::LayerNormAttrs& attrs) {
  return 1 / std::sqrt(variance + attrs.epsilon);
}

}  // namespace

Body layer_norm(const Described& d) {
  return [r = Rows(d.in[0]), attrs = d.attrs<ir::LayerNormAttrs>()](const KernelArgs& args) {
    const auto width = static_cast<double>(r.width);
    const std::size_t last = args.inputs.size() - 1;
    for (std::int64_t row = 0; row < r.rows; ++row) {
      std::vector<double> x(floats_in(args, 0) + row * r.width, floats_in(args, 0) + (row + 1) * r.width);
      if (attrs.add) {
        for (std::int64_t i = 0; i < r.width; ++i) {
          const float sum = floats_in(args, 0)[row * r.width + i] + floats_in(args, last)[row * r.width + i];
          floats_out(args, args.outputs.size() - 1)[row * r.width + i] = sum;
          x[static_cast<std::size_t>(i)] = sum;
        }
      }
      const double mean = attrs.rms ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / width;
      double squares = 0;
      for (const double value : x) squares += (value - mean) * (value - mean);
      const double scale = reciprocal_deviation(squares / width, attrs);
      for (std::int64_t i = 0; i < r.width; ++i) {
        const double normed = (x[static_cast<std::size_t>(i)] - mean) * scale;
        const double beta = attrs.rms ? 0.0F : floats_in(args, 2)[i];
        floats_out(args, 0)[row * r.width + i] = static_cast<float>(normed * floats_in(args, 1)[i] + beta);
      }
      if (!attrs.rms) floats_out(args, 1)[row] = static_cast<float>(mean);
      floats_out(args, attrs.rms ? 1 : 2)[row] = static_cast<float>(squares / width);
    }
  };
}

Body layer_norm_backward(const Described& d) {
  return [r = Rows(d.in[0]), attrs = d.attrs<ir::LayerNormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* dy = floats_in(args, 1);
    const float* gamma = floats_in(args, 2);
    const std::size_t variance = attrs.rms ? 3 : 4;
    const auto scale = [&](std::int64_t row) {
      return reciprocal_deviation(floats_in(args, variance)[row], attrs);
    };
    const auto normed = [&](std::int64_t row, std::int64_t i) {
      const double mean = attrs.rms ? 0.0F : floats_in(args, 3)[row];
      return (x[row * r.width + i] - mean) * scale(row);
    };
    for (std::int64_t i = 0; i < r.width; ++i) {
      double dgamma = 0;
      double dbeta = 0;
      for (std::int64_t row = 0; row < r.rows; ++row) {
        dgamma += dy[row * r.width + i] * normed(row, i);
        dbeta += dy[row * r.width + i];
      }
      floats_out(args, 1)[i] = static_cast<float>(dgamma);
      if (!attrs.rms) floats_out(args, 2)[i] = static_cast<float>(dbeta);
    }
    const auto width = static_cast<double>(r.width);
    for (std::int64_t row = 0; row < r.rows; ++row) {
      double sum = 0;
      double projection = 0;
      for (std::int64_t i = 0; i < r.width; ++i) {
        const double gradient = static_cast<double>(dy[row * r.width + i]) * gamma[i];
        sum += gradient;
        projection += gradient * normed(row, i);
      }
      if (attrs.rms) sum = 0;
      for (std::int64_t i = 0; i < r.width; ++i) {
        const double gradient = static_cast<double>(dy[row * r.width + i]) * gamma[i];
        const double more = attrs.add ? floats_in(args, variance + 1)[row * r.width + i] : 0.0F;
        floats_out(args, 0)[row * r.width + i] = static_cast<float>(
            scale(row) * (gradient - sum / width - normed(row, i) * projection / width) + more);
      }
    }
  };
}

}  // namespace penstock::kernels::reference
