#include <cmath>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// [..., D] as rows of D elements.
struct Rows {
  explicit Rows(const ir::Shape& shape)
      : rows(shape.elements(0, shape.rank() - 1)), width(shape[shape.rank() - 1]) {}
  std::int64_t rows, width;
};

double reciprocal_deviation(double variance, const ir::NormAttrs& attrs) {
  return 1 / std::sqrt(variance + attrs.epsilon);
}

}  // namespace

Body layer_norm(const Described& d) {
  return [r = Rows(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const auto width = static_cast<double>(r.width);
    for (std::int64_t row = 0; row < r.rows; ++row) {
      const float* x = floats_in(args, 0) + row * r.width;
      double sum = 0;
      for (std::int64_t i = 0; i < r.width; ++i) sum += x[i];
      const double mean = sum / width;
      double squares = 0;
      for (std::int64_t i = 0; i < r.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = reciprocal_deviation(squares / width, attrs);
      for (std::int64_t i = 0; i < r.width; ++i) {
        const double normed = (x[i] - mean) * scale;
        floats_out(args, 0)[row * r.width + i] =
            static_cast<float>(normed * floats_in(args, 1)[i] + floats_in(args, 2)[i]);
      }
      floats_out(args, 1)[row] = static_cast<float>(mean);
      floats_out(args, 2)[row] = static_cast<float>(squares / width);
    }
  };
}

Body layer_norm_backward(const Described& d) {
  return [r = Rows(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* dy = floats_in(args, 1);
    const float* gamma = floats_in(args, 2);
    const auto scale = [&](std::int64_t row) { return reciprocal_deviation(floats_in(args, 4)[row], attrs); };
    const auto normed = [&](std::int64_t row, std::int64_t i) {
      return (x[row * r.width + i] - static_cast<double>(floats_in(args, 3)[row])) * scale(row);
    };
    for (std::int64_t i = 0; i < r.width; ++i) {
      double dgamma = 0;
      double dbeta = 0;
      for (std::int64_t row = 0; row < r.rows; ++row) {
        dgamma += dy[row * r.width + i] * normed(row, i);
        dbeta += dy[row * r.width + i];
      }
      floats_out(args, 1)[i] = static_cast<float>(dgamma);
      floats_out(args, 2)[i] = static_cast<float>(dbeta);
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
      for (std::int64_t i = 0; i < r.width; ++i) {
        const double gradient = static_cast<double>(dy[row * r.width + i]) * gamma[i];
        floats_out(args, 0)[row * r.width + i] =
            static_cast<float>(scale(row) * (gradient - sum / width - normed(row, i) * projection / width));
      }
    }
  };
}

}  // namespace penstock::kernels::reference
