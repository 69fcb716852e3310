#include <algorithm>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// A matrix of `rows` x `columns` as it stands in a product, whether stored so or transposed.
struct Matrix {
  const float* data;
  std::int64_t rows, columns;
  bool transposed;

  double at(std::int64_t row, std::int64_t column) const {
    return data[transposed ? column * rows + row : row * columns + column];
  }
};

/// Calls store(row, column, sum) for each element of the product.
template <typename Store>
void multiply_matrices(const Matrix& a, const Matrix& b, Store&& store) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t column = 0; column < b.columns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.columns; ++k) sum += a.at(row, k) * b.at(k, column);
      store(row, column, sum);
    }
  }
}

/// The extents of a linear layer whose leading dimensions are one, and how its weights lie.
struct Layer {
  Layer(const ir::Shape& x, const ir::Shape& weights, const ir::LinearAttrs& attrs)
      : rows(x.elements(0, x.rank() - 1)),
        inputs(weights[attrs.turned ? 0 : 1]),
        outputs(weights[attrs.turned ? 1 : 0]),
        turned(attrs.turned) {}
  std::int64_t rows, inputs, outputs;
  bool turned;
};

}  // namespace

Body linear(const Described& d) {
  const auto& attrs = d.attrs<ir::LinearAttrs>();
  const Layer layer(d.in[0], d.in[1], attrs);
  return [layer, relu = attrs.relu](const KernelArgs& args) {
    const float* bias = args.inputs.size() > 2 ? floats_in(args, 2) : nullptr;
    float* y = floats_out(args, 0);
    multiply_matrices({floats_in(args, 0), layer.rows, layer.inputs, false},
                      {floats_in(args, 1), layer.inputs, layer.outputs, !layer.turned},
                      [&](std::int64_t row, std::int64_t column, double sum) {
                        if (bias != nullptr) sum += bias[column];
                        y[row * layer.outputs + column] = static_cast<float>(relu ? std::max(sum, 0.0) : sum);
                      });
  };
}

Body linear_backward_data(const Described& d) {
  const Layer layer(d.out[0], d.in[1], d.attrs<ir::LinearAttrs>());
  return [=](const KernelArgs& args) {
    float* dx = floats_out(args, 0);
    multiply_matrices({floats_in(args, 0), layer.rows, layer.outputs, false},
                      {floats_in(args, 1), layer.outputs, layer.inputs, layer.turned},
                      [&](std::int64_t row, std::int64_t column, double sum) {
                        dx[row * layer.inputs + column] = static_cast<float>(sum);
                      });
  };
}

Body linear_backward_weights(const Described& d) {
  const auto& attrs = d.attrs<ir::LinearAttrs>();
  const std::int64_t inputs = d.in[0][d.in[0].rank() - 1];
  const std::int64_t outputs = d.in[1][d.in[1].rank() - 1];
  const std::int64_t rows = d.in[0].elements() / inputs;
  const bool turned = attrs.turned;
  return [=, begin = attrs.begin, dw_rows = d.out[0][0]](const KernelArgs& args) {
    const float* dy = floats_in(args, 1);
    const Matrix by_output{dy, outputs, rows, true};
    const Matrix by_input{floats_in(args, 0), inputs, rows, true};
    const Matrix others =
        turned ? Matrix{dy, rows, outputs, false} : Matrix{floats_in(args, 0), rows, inputs, false};
    float* dw = floats_out(args, 0);
    multiply_matrices(turned ? by_input : by_output, others,
                      [&](std::int64_t row, std::int64_t column, double sum) {
                        if (row < begin || row >= begin + dw_rows) return;
                        dw[(row - begin) * others.columns + column] = static_cast<float>(sum);
                      });
    if (args.outputs.size() < 2) return;
    for (std::int64_t m = 0; m < outputs; ++m) {
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) sum += dy[row * outputs + m];
      floats_out(args, 1)[m] = static_cast<float>(sum);
    }
  };
}

Body matmul(const Described& d) {
  const auto attrs = d.attrs<ir::MatmulAttrs>();
  const std::size_t rank = d.out[0].rank();
  const std::int64_t batch = d.out[0].elements(0, rank - 2);
  const std::int64_t rows = d.out[0][rank - 2];
  const std::int64_t columns = d.out[0][rank - 1];
  const std::int64_t inner = d.in[0][attrs.transpose_a ? rank - 2 : rank - 1];
  return [=](const KernelArgs& args) {
    for (std::int64_t i = 0; i < batch; ++i) {
      float* y = floats_out(args, 0) + i * rows * columns;
      multiply_matrices({floats_in(args, 0) + i * rows * inner, rows, inner, attrs.transpose_a},
                        {floats_in(args, 1) + i * inner * columns, inner, columns, attrs.transpose_b},
                        [&](std::int64_t row, std::int64_t column, double sum) {
                          y[row * columns + column] = static_cast<float>(attrs.scale * sum);
                        });
    }
  };
}

Body bias(const Described& d) {
  return [shape = d.in[0]](const KernelArgs& args) {
    const std::int64_t plane = shape.elements(2, shape.rank());
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      floats_out(args, 0)[i] = floats_in(args, 0)[i] + floats_in(args, 1)[i / plane % shape[1]];
    }
  };
}

Body bias_backward(const Described& d) {
  return [shape = d.in[0]](const KernelArgs& args) {
    const std::int64_t plane = shape.elements(2, shape.rank());
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      double sum = 0;
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        for (std::int64_t i = 0; i < plane; ++i) sum += floats_in(args, 0)[(n * shape[1] + c) * plane + i];
      }
      floats_out(args, 0)[c] = static_cast<float>(sum);
    }
  };
}

}  // namespace penstock::kernels::reference
