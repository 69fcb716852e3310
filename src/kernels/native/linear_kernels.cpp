#include <algorithm>

#include "kernels/native/simd/text_table.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::native {
namespace {

/// A linear layer: rows of `inputs` features become rows of `outputs`.
struct Layer {
  Layer(const ir::LinearAttrs& attrs, const ir::Shape& x, std::int64_t outputs)
      : rows(x.elements(0, x.rank() - 1)), inputs(x[x.rank() - 1]), outputs(outputs), turned(attrs.turned) {}
  std::int64_t rows, inputs, outputs;
  bool turned;  ///< weights [inputs, outputs], else [outputs, inputs]

  /// The weights as a matrix of inputs by outputs.
  MatrixView weights(const float* data) const {
    return turned ? MatrixView{data, outputs, 1} : MatrixView{data, 1, inputs};
  }
};

std::int64_t outputs_of(const ir::LinearAttrs& attrs, const ir::Shape& weights) {
  return weights[attrs.turned ? 1 : 0];
}
std::int64_t inputs_of(const ir::LinearAttrs& attrs, const ir::Shape& weights) {
  return weights[attrs.turned ? 0 : 1];
}

std::int64_t product_bytes(std::int64_t m, std::int64_t n, std::int64_t k) {
  return text_simd().product_floats(m, n, k) * 4;
}

}  // namespace

std::shared_ptr<const Kernel> make_linear(const ir::LinearAttrs& attrs, const ShapeList& in) {
  const Layer layer(attrs, in[0], outputs_of(attrs, in[1]));
  return make_kernel(
      [=](const KernelArgs& args) {
        Product product;
        product.m = layer.rows;
        product.n = layer.outputs;
        product.k = layer.inputs;
        product.a = {floats_in(args, 0), layer.inputs, 1};
        product.b = layer.weights(floats_in(args, 1));
        product.bias = floats_in(args, 2);
        product.c = floats_out(args, 0);
        product.c_row = layer.outputs;
        product.relu = attrs.relu;
        product.scratch = static_cast<float*>(args.scratch);
        text_simd().product(product);
      },
      {}, product_bytes(layer.rows, layer.outputs, layer.inputs));
}

std::shared_ptr<const Kernel> make_linear_backward_data(const ir::LinearAttrs& attrs, const ShapeList& in) {
  const Layer layer(attrs, in[0], outputs_of(attrs, in[1]));  // in[0] is dy: rows are the same
  const std::int64_t inputs = inputs_of(attrs, in[1]);
  return make_kernel(
      [=](const KernelArgs& args) {
        const float* weights = floats_in(args, 1);
        Product product;
        product.m = layer.rows;
        product.n = inputs;
        product.k = layer.outputs;
        product.a = {floats_in(args, 0), layer.outputs, 1};
        product.b = layer.turned ? MatrixView{weights, 1, layer.outputs} : MatrixView{weights, inputs, 1};
        product.c = floats_out(args, 0);
        product.c_row = inputs;
        product.scratch = static_cast<float*>(args.scratch);
        text_simd().product(product);
      },
      {}, product_bytes(layer.rows, inputs, layer.outputs));
}

std::shared_ptr<const Kernel> make_linear_backward_bias(std::int64_t rows, std::int64_t outputs) {
  return make_kernel(
      [=](const KernelArgs& args) {
        const ColumnSums sums{rows, outputs, floats_in(args, 1), floats_out(args, 1),
                              static_cast<float*>(args.scratch)};
        text_simd().column_sums(sums);
      },
      {}, column_sums_floats(rows, outputs) * 4);
}

std::shared_ptr<const Kernel> make_linear_backward_weights(const ir::LinearAttrs& attrs, const ShapeList& in,
                                                           std::int64_t rows, bool has_bias) {
  const Layer layer(attrs, in[0], in[1][in[1].rank() - 1]);
  const std::shared_ptr<const Kernel> bias =
      has_bias ? make_linear_backward_bias(layer.rows, layer.outputs) : nullptr;
  const std::int64_t m = rows;
  const std::int64_t n = layer.turned ? layer.outputs : layer.inputs;
  return make_kernel(
      [=](const KernelArgs& args) {
        const MatrixView x{floats_in(args, 0), 1, layer.inputs};    // features by rows
        const MatrixView dy{floats_in(args, 1), 1, layer.outputs};  // outputs by rows
        Product product;
        product.m = m;
        product.n = n;
        product.k = layer.rows;
        product.a = layer.turned ? x : dy;
        product.a.data += attrs.begin;
        product.b =
            layer.turned ? MatrixView{dy.data, layer.outputs, 1} : MatrixView{x.data, layer.inputs, 1};
        product.c = floats_out(args, 0);
        product.c_row = n;
        product.scratch = static_cast<float*>(args.scratch);
        text_simd().product(product);
        if (bias != nullptr) bias->run(args);
      },
      {}, std::max(product_bytes(m, n, layer.rows), bias != nullptr ? bias->scratch_bytes() : 0));
}

}  // namespace penstock::kernels::native
