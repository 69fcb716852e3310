#include <limits>

#include "base/error.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// The element of a tensor of shape `x` that broadcasts to element `at` of shape `y`.
std::int64_t broadcast_element(const ir::Shape& x, const ir::Shape& y, std::int64_t at) {
  std::int64_t element = 0;
  std::int64_t stride = 1;
  for (std::size_t i = y.rank(); i-- > 0;) {
    const std::int64_t place = at % y[i];
    at /= y[i];
    if (i < y.rank() - x.rank()) continue;
    const std::int64_t extent = x[i - (y.rank() - x.rank())];
    if (extent > 1) element += place * stride;
    stride *= extent;
  }
  return element;
}

double read(const void* x, ir::DType dtype, std::int64_t i) {
  return dtype == ir::DType::f32   ? static_cast<const float*>(x)[i]
         : dtype == ir::DType::s32 ? static_cast<const std::int32_t*>(x)[i]
                                   : static_cast<const std::uint8_t*>(x)[i];
}

void write(void* y, ir::DType dtype, std::int64_t i, double value) {
  if (dtype == ir::DType::f32) {
    static_cast<float*>(y)[i] = static_cast<float>(value);
  } else if (dtype == ir::DType::s32) {
    static_cast<std::int32_t*>(y)[i] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::uint8_t*>(y)[i] = value != 0 ? 1 : 0;
  }
}

double joined(ir::Reduction function, double a, double b) {
  switch (function) {
    case ir::Reduction::sum:
    case ir::Reduction::mean:
      return a + b;
    case ir::Reduction::largest:
      return a > b ? a : b;
    case ir::Reduction::smallest:
      return a < b ? a : b;
    case ir::Reduction::product:
      return a * b;
  }
  throw InternalError("not a reduction");
}

}  // namespace

Body pointwise(const Described& d) {
  return [program = d.attrs<ir::PointwiseAttrs>().program, in = d.in, out = d.out[0], in_types = d.in_types,
          out_types = d.out_types](const KernelArgs& args) {
    std::vector<double> values;
    const auto of = [&](std::int32_t v) { return v < 0 ? 0 : values[static_cast<std::size_t>(v)]; };
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      values.clear();
      for (std::size_t k = 0; k < in.size(); ++k)
        values.push_back(read(args.inputs[k], in_types[k], broadcast_element(in[k], out, i)));
      for (const ir::Step& step : program.steps) {
        values.push_back(step.function == ir::Function::constant
                             ? step.value
                             : ir::evaluate(step.function, of(step.a), of(step.b), of(step.c)));
      }
      for (std::size_t o = 0; o < program.outputs.size(); ++o)
        write(args.outputs[o], out_types[o], i, of(program.outputs[o]));
    }
  };
}

Body reduce(const Described& d) {
  ir::Shape y = d.in[0];
  for (const std::int64_t axis : d.attrs<ir::ReduceAttrs>().axes) y.set(static_cast<std::size_t>(axis), 1);
  return [x = d.in[0], y, function = d.attrs<ir::ReduceAttrs>().function](const KernelArgs& args) {
    std::vector<double> results(static_cast<std::size_t>(y.elements()));
    std::vector<bool> begun(results.size(), false);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const auto at = static_cast<std::size_t>(broadcast_element(y, x, i));
      const double value = floats_in(args, 0)[i];
      results[at] = begun[at] ? joined(function, results[at], value) : value;
      begun[at] = true;
    }
    const double each = static_cast<double>(x.elements()) / static_cast<double>(y.elements());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const double value = function == ir::Reduction::mean ? results[i] / each : results[i];
      floats_out(args, 0)[i] = static_cast<float>(value);
    }
  };
}

}  // namespace penstock::kernels::reference
