#include <algorithm>

#include "kernels/cpu/request.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::cpu {
namespace {

/// Rows of features by a layer's weights, in either order.
struct Layer {
  std::int64_t rows, inputs, outputs;
  bool turned;  ///< weights [inputs, outputs], else [outputs, inputs]
};

MemoryDesc matrix(std::int64_t rows, std::int64_t columns, bool turned = false) {
  return MemoryDesc({rows, columns}, dnnl::memory::data_type::f32, turned ? Dims{1, rows} : Dims{columns, 1});
}

/// Some rows of the gradient of weights, and with them the gradient of the bias: the library's product begins
/// at the column `begin` of the operand that is turned.
class WeightGradient final : public Kernel {
 public:
  WeightGradient(PrimitiveKernel product, std::size_t turned_input, std::int64_t begin,
                 std::shared_ptr<const Kernel> bias)
      : product_(std::move(product)), turned_input_(turned_input), begin_(begin), bias_(std::move(bias)) {}

  void run(const KernelArgs& args) const override {
    std::vector<const void*> inputs(args.inputs.begin(), args.inputs.end());
    inputs[turned_input_] = static_cast<const float*>(inputs[turned_input_]) + begin_;
    KernelArgs moved = args;
    moved.inputs = inputs;
    product_.run(moved);
    if (bias_ != nullptr) bias_->run(args);
  }
  std::int64_t scratch_bytes() const override {
    return std::max(product_.scratch_bytes(), bias_ != nullptr ? bias_->scratch_bytes() : 0);
  }
  std::string implementation() const override { return product_.implementation(); }
  bool can_overwrite(std::size_t /*output*/, std::size_t /*input*/) const override { return false; }

 private:
  PrimitiveKernel product_;
  std::size_t turned_input_;
  std::int64_t begin_;
  std::shared_ptr<const Kernel> bias_;
};

dnnl::matmul::primitive_desc product_desc(const Request& request, const MemoryDesc& a, const MemoryDesc& b,
                                          const MemoryDesc& bias, const MemoryDesc& c, bool relu = false) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (relu) {
    dnnl::post_ops ops;
    ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attr.set_post_ops(ops);
  }
  return {request.engine->cpu, a, b, bias, c, attr};
}

std::shared_ptr<const Kernel> make_forward(const Request& request, const Layer& layer) {
  const MemoryDesc x = matrix(layer.rows, layer.inputs);
  const MemoryDesc weights = matrix(layer.inputs, layer.outputs, !layer.turned);
  const MemoryDesc y = matrix(layer.rows, layer.outputs);
  const bool has_bias = request.op.inputs.size() > 2;
  const MemoryDesc bias = has_bias ? matrix(1, layer.outputs) : MemoryDesc{};
  const auto desc = product_desc(request, x, weights, bias, y, request.op.attrs_as<ir::LinearAttrs>().relu);
  std::vector<Binding> bindings{
      {DNNL_ARG_SRC, false, 0, x}, {DNNL_ARG_WEIGHTS, false, 1, weights}, {DNNL_ARG_DST, true, 0, y}};
  if (has_bias) bindings.push_back({DNNL_ARG_BIAS, false, 2, bias});
  return std::make_shared<PrimitiveKernel>(request.engine, desc, dnnl::primitive(desc), bindings);
}

std::shared_ptr<const Kernel> make_backward_data(const Request& request, const Layer& layer) {
  const MemoryDesc dy = matrix(layer.rows, layer.outputs);
  const MemoryDesc weights = matrix(layer.outputs, layer.inputs, layer.turned);
  const MemoryDesc dx = matrix(layer.rows, layer.inputs);
  const auto desc = product_desc(request, dy, weights, {}, dx);
  return std::make_shared<PrimitiveKernel>(
      request.engine, desc, dnnl::primitive(desc),
      std::vector<Binding>{
          {DNNL_ARG_SRC, false, 0, dy}, {DNNL_ARG_WEIGHTS, false, 1, weights}, {DNNL_ARG_DST, true, 0, dx}});
}

std::shared_ptr<const Kernel> make_backward_weights(const Request& request, const Layer& layer) {
  const ir::LinearAttrs& attrs = request.op.attrs_as<ir::LinearAttrs>();
  const std::int64_t rows = request.output(0).shape[0];
  const std::size_t turned_input = layer.turned ? 0 : 1;
  const std::int64_t width = layer.turned ? layer.inputs : layer.outputs;
  const std::int64_t columns = layer.turned ? layer.outputs : layer.inputs;
  const MemoryDesc a({rows, layer.rows}, dnnl::memory::data_type::f32, Dims{1, width});
  const MemoryDesc b = matrix(layer.rows, columns);
  const MemoryDesc c = matrix(rows, columns);
  const auto desc = product_desc(request, a, b, {}, c);
  PrimitiveKernel product(request.engine, desc, dnnl::primitive(desc),
                          {{DNNL_ARG_SRC, false, turned_input, a},
                           {DNNL_ARG_WEIGHTS, false, 1 - turned_input, b},
                           {DNNL_ARG_DST, true, 0, c}});
  const bool has_bias = request.op.outputs.size() > 1;
  return std::make_shared<WeightGradient>(
      std::move(product), turned_input, attrs.begin,
      has_bias ? native::make_linear_backward_bias(layer.rows, layer.outputs) : nullptr);
}

}  // namespace

bool has_wide_vectors() {
  constexpr auto kWide = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kWide) == kWide;
}

Selection select_wide_linear(const Request& request) {
  const bool turned = request.op.attrs_as<ir::LinearAttrs>().turned;
  const ir::Shape& rows = request.input(0).shape;
  const ir::Shape& second = request.input(1).shape;
  const std::size_t last = rows.rank() - 1;
  Layer layer{rows.elements(0, last), rows[last], second[turned ? 1 : 0], turned};
  Selection selection = request.plain_selection();
  if (request.op.kind == ir::OpKind::linear) {
    selection.kernel = make_forward(request, layer);
  } else if (request.op.kind == ir::OpKind::linear_backward_data) {
    layer.inputs = second[turned ? 0 : 1];
    layer.outputs = rows[last];
    selection.kernel = make_backward_data(request, layer);
  } else {
    layer.outputs = second[second.rank() - 1];
    selection.kernel = make_backward_weights(request, layer);
  }
  return selection;
}

}  // namespace penstock::kernels::cpu
