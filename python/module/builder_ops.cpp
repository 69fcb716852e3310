#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using Builder = NetworkBuilder;
using Text = const std::string&;

Value weighted_cross_entropy(Builder& b, Value logits, Value labels, float smoothing, std::int32_t ignored,
                             const std::optional<Value>& class_weights, Text name) {
  CrossEntropyOptions options;
  options.smoothing = smoothing;
  options.ignored = ignored;
  options.class_weights = class_weights.value_or(Value{});
  return b.weighted_cross_entropy(logits, labels, options, name);
}

Value reduce(Builder& b, Text function, Value x, const Extents& axes, bool keep, Text name) {
  return b.reduce(choice<Reduction>("reduction", function,
                                    {{"sum", Reduction::sum},
                                     {"mean", Reduction::mean},
                                     {"max", Reduction::largest},
                                     {"min", Reduction::smallest},
                                     {"prod", Reduction::product}}),
                  x, axes, keep, name);
}

}  // namespace

void bind_builder_ops(nb::class_<Builder>& builder) {
  builder
      .def(
          "apply",
          [](Builder& b, Text function, const std::vector<Value>& inputs,
             const std::vector<float>& parameters, Text name,
             Text dtype) { return b.apply(function, inputs, parameters, name, dtype_of(dtype)); },
          "function"_a, "inputs"_a, "parameters"_a = std::vector<float>{}, "name"_a = "",
          "dtype"_a = "float32", "A function by its name in PyTorch or NumPy, of inputs that broadcast.")
      .def(
          "cast", [](Builder& b, Value x, Text dtype, Text name) { return b.cast(x, dtype_of(dtype), name); },
          "x"_a, "dtype"_a, "name"_a = "")
      .def("log_softmax", &Builder::log_softmax, "x"_a, "axis"_a = 1, "name"_a = "")
      .def("reduce", &reduce, "function"_a, "x"_a, "axes"_a, "keep"_a = false, "name"_a = "",
           "sum, mean, max, min or prod over axes; no axes: over all.")
      .def("argmax", &Builder::argmax, "x"_a, "axis"_a, "name"_a = "")
      .def("expand", &Builder::expand, "x"_a, "shape"_a, "name"_a = "")
      .def("slice", &Builder::slice, "x"_a, "axis"_a, "begin"_a, "count"_a, "step"_a = 1, "name"_a = "")
      .def("flip", &Builder::flip, "x"_a, "axis"_a, "name"_a = "")
      .def("roll", &Builder::roll, "x"_a, "axis"_a, "shift"_a, "name"_a = "")
      .def("gather", &Builder::gather, "x"_a, "indices"_a, "axis"_a, "name"_a = "")
      .def("stack", &Builder::stack, "values"_a, "axis"_a, "name"_a = "")
      .def("weighted_cross_entropy", &weighted_cross_entropy, "logits"_a, "labels"_a, "smoothing"_a = 0.0F,
           "ignored"_a = -100, "class_weights"_a = nb::none(), "name"_a = "")
      .def("element_loss", &Builder::element_loss, "loss"_a, "prediction"_a, "target"_a, "width"_a = 1.0F,
           "name"_a = "", "mse, l1, smooth_l1, huber, bce_with_logits or kl: the mean.");
}

}  // namespace penstock::python
