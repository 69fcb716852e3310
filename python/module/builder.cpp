#include <nanobind/stl/pair.h>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using Builder = NetworkBuilder;
using Maybe = std::optional<Value>;
using Text = const std::string&;

Value or_none(const Maybe& value) {
  return value.value_or(Value{});
}

ConvOptions conv_options(const Ints& stride, const Ints& padding, const std::optional<Ints>& padding_end,
                         const Ints& dilation, std::int64_t groups) {
  ConvOptions options;
  options.stride = extents_of(stride);
  options.padding = extents_of(padding);
  if (padding_end) options.padding_end = extents_of(*padding_end);
  options.dilation = extents_of(dilation);
  options.groups = groups;
  return options;
}

PoolOptions pool_options(const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding,
                         const std::optional<Ints>& padding_end, bool count_include_pad) {
  PoolOptions options;
  options.kernel = extents_of(kernel);
  options.stride = stride ? extents_of(*stride) : options.kernel;
  options.padding = extents_of(padding);
  if (padding_end) options.padding_end = extents_of(*padding_end);
  options.count_include_pad = count_include_pad;
  return options;
}

AttentionOptions attention_options(std::int64_t heads, std::int64_t kv_heads, bool causal, float scale,
                                   float dropout) {
  return {heads, kv_heads, causal, scale, dropout};
}

Init init_of(Text kind, float value) {
  return {choice<Init::Kind>("init", kind,
                             {{"constant", Init::Kind::constant},
                              {"uniform", Init::Kind::uniform},
                              {"normal", Init::Kind::normal}}),
          value};
}

void bind_ports(nb::class_<Builder>& builder) {
  builder.def(nb::init<std::string>(), "name"_a)
      .def("finish", &Builder::finish, "Ends the network; the builder is empty afterwards.")
      .def(
          "shape",
          [](const Builder& b, Value value) {
            nb::list list;
            for (const std::int64_t extent : b.shape(value)) list.append(extent);
            return nb::tuple(list);
          },
          "value"_a)
      .def(
          "dtype", [](const Builder& b, Value value) { return std::string(dtype_name(b.dtype(value))); },
          "value"_a)
      .def("name", &Builder::name, "value"_a)
      .def("name_layers", &Builder::name_layers, "base"_a,
           "Layers that are given no name are called after this from now on; empty: after their input.")
      .def(
          "input",
          [](Builder& b, Text name, const Extents& shape, Text dtype) {
            return b.input(name, dtype_of(dtype), shape);
          },
          "name"_a, "shape"_a, "dtype"_a = "float32", "A value that the caller gives in each step.")
      .def(
          "parameter",
          [](Builder& b, Text name, const Extents& shape, Text init, float value) {
            return b.parameter(name, shape, init_of(init, value));
          },
          "name"_a, "shape"_a, "init"_a = "constant", "value"_a = 0.0F,
          "State that is trained. Used twice, it is tied: its gradients are summed.")
      .def(
          "buffer",
          [](Builder& b, Text name, const Extents& shape, Text init, float value) {
            return b.buffer(name, shape, init_of(init, value));
          },
          "name"_a, "shape"_a, "init"_a = "constant", "value"_a = 0.0F, "State that is not trained.")
      .def(
          "init", [](Builder& b, Text name, Text init, float value) { b.init(name, init_of(init, value)); },
          "parameter"_a, "init"_a, "value"_a)
      .def("output", &Builder::output, "name"_a, "value"_a, "evaluation_only"_a = false,
           "Lets the caller read a value back.")
      .def("loss", &Builder::loss, "value"_a, "Says which number training makes smaller.")
      .def("classifier", &Builder::classifier, "logits"_a, "labels"_a,
           "The cross entropy as the loss; in evaluation outputs `logits` and `correct`.");
}

void bind_products(nb::class_<Builder>& builder) {
  builder
      .def(
          "conv",
          [](Builder& b, Text name, Value x, std::int64_t channels, const Ints& kernel, const Ints& stride,
             const Ints& padding, const Ints& dilation, std::int64_t groups, bool bias) {
            ConvOptions options = conv_options(stride, padding, {}, dilation, groups);
            options.kernel = extents_of(kernel);
            options.bias = bias;
            return b.conv(name, x, channels, options);
          },
          "name"_a, "x"_a, "channels"_a, "kernel"_a, "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
          "groups"_a = 1, "bias"_a = true, "A convolution that makes its parameters.")
      .def(
          "conv_with",
          [](Builder& b, Value x, Value weight, const Maybe& bias, const Ints& stride, const Ints& padding,
             const std::optional<Ints>& padding_end, const Ints& dilation, std::int64_t groups, Text name) {
            return b.conv(x, weight, or_none(bias),
                          conv_options(stride, padding, padding_end, dilation, groups), name);
          },
          "x"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0,
          "padding_end"_a = nb::none(), "dilation"_a = 1, "groups"_a = 1, "name"_a = "",
          "A convolution by a weight [channels, C / groups, kernel...].")
      .def(
          "conv_transpose_with",
          [](Builder& b, Value x, Value weight, const Maybe& bias, const Ints& stride, const Ints& padding,
             const Ints& output_padding, const Ints& dilation, std::int64_t groups, Text name) {
            ConvOptions options = conv_options(stride, padding, {}, dilation, groups);
            options.output_padding = extents_of(output_padding);
            return b.conv_transpose(x, weight, or_none(bias), options, name);
          },
          "x"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0, "output_padding"_a = 0,
          "dilation"_a = 1, "groups"_a = 1, "name"_a = "")
      .def(
          "linear",
          [](Builder& b, Text name, Value x, std::int64_t features, bool bias) {
            return b.linear(name, x, features, bias);
          },
          "name"_a, "x"_a, "features"_a, "bias"_a = true, "x [..., K] -> [..., features]")
      .def(
          "linear_with",
          [](Builder& b, Value x, Value weight, const Maybe& bias, bool turned, Text name) {
            return b.linear(x, weight, or_none(bias), turned, name);
          },
          "x"_a, "weight"_a, "bias"_a = nb::none(), "turned"_a = false, "name"_a = "")
      .def(
          "matmul",
          [](Builder& b, Value a, Value c, bool transpose_a, bool transpose_b, float scale, Text name) {
            return b.matmul(a, c, {transpose_a, transpose_b, scale}, name);
          },
          "a"_a, "b"_a, "transpose_a"_a = false, "transpose_b"_a = false, "scale"_a = 1.0F, "name"_a = "")
      .def("bias", nb::overload_cast<Value, Value, Text>(&Builder::bias), "x"_a, "bias"_a, "name"_a = "");
}

void bind_norms(nb::class_<Builder>& builder) {
  builder
      .def("batch_norm", nb::overload_cast<Text, Value, float, float>(&Builder::batch_norm), "name"_a, "x"_a,
           "epsilon"_a = 1e-5F, "momentum"_a = 0.1F, "Over all axes but 1; keeps running statistics.")
      .def("batch_norm_with",
           nb::overload_cast<Value, Value, Value, Value, Value, float, float, Text>(&Builder::batch_norm),
           "x"_a, "gamma"_a, "beta"_a, "running_mean"_a, "running_var"_a, "epsilon"_a, "momentum"_a,
           "name"_a = "")
      .def("layer_norm", nb::overload_cast<Text, Value, float>(&Builder::layer_norm), "name"_a, "x"_a,
           "epsilon"_a = 1e-5F, "Over the last axis.")
      .def("layer_norm_with", nb::overload_cast<Value, Value, Value, float, Text>(&Builder::layer_norm),
           "x"_a, "gamma"_a, "beta"_a, "epsilon"_a, "name"_a = "")
      .def("rms_norm", nb::overload_cast<Text, Value, float>(&Builder::rms_norm), "name"_a, "x"_a,
           "epsilon"_a = 1e-6F)
      .def("rms_norm_with", nb::overload_cast<Value, Value, float, Text>(&Builder::rms_norm), "x"_a,
           "gamma"_a, "epsilon"_a, "name"_a = "")
      .def(
          "lrn",
          [](Builder& b, Value x, std::int64_t size, float alpha, float beta, float k, Text name) {
            return b.lrn(x, {size, alpha, beta, k}, name);
          },
          "x"_a, "size"_a = 5, "alpha"_a = 1e-4F, "beta"_a = 0.75F, "k"_a = 1.0F, "name"_a = "");
}

void bind_elements(nb::class_<Builder>& builder) {
  builder.def("relu", &Builder::relu, "x"_a, "name"_a = "")
      .def("leaky_relu", &Builder::leaky_relu, "x"_a, "slope"_a = 0.01F, "name"_a = "")
      .def("gelu", &Builder::gelu, "x"_a, "name"_a = "")
      .def("sigmoid", &Builder::sigmoid, "x"_a, "name"_a = "")
      .def("tanh", &Builder::tanh, "x"_a, "name"_a = "")
      .def("dropout", &Builder::dropout, "x"_a, "probability"_a, "name"_a = "")
      .def("add", &Builder::add, "a"_a, "b"_a, "name"_a = "")
      .def("multiply", &Builder::multiply, "a"_a, "b"_a, "name"_a = "")
      .def("softmax", &Builder::softmax, "x"_a, "axis"_a = 1, "name"_a = "");
}

void bind_windows(nb::class_<Builder>& builder) {
  builder
      .def(
          "max_pool",
          [](Builder& b, Value x, const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding,
             const std::optional<Ints>& padding_end, Text name) {
            return b.max_pool(x, pool_options(kernel, stride, padding, padding_end, true), name);
          },
          "x"_a, "kernel"_a, "stride"_a = nb::none(), "padding"_a = 0, "padding_end"_a = nb::none(),
          "name"_a = "")
      .def(
          "avg_pool",
          [](Builder& b, Value x, const Ints& kernel, const std::optional<Ints>& stride, const Ints& padding,
             const std::optional<Ints>& padding_end, bool count_include_pad, Text name) {
            return b.avg_pool(x, pool_options(kernel, stride, padding, padding_end, count_include_pad), name);
          },
          "x"_a, "kernel"_a, "stride"_a = nb::none(), "padding"_a = 0, "padding_end"_a = nb::none(),
          "count_include_pad"_a = true, "name"_a = "")
      .def("global_avg_pool", &Builder::global_avg_pool, "x"_a, "name"_a = "")
      .def("adaptive_avg_pool", &Builder::adaptive_avg_pool, "x"_a, "size"_a, "name"_a = "")
      .def(
          "upsample",
          [](Builder& b, Value x, const Ints& factor, bool bilinear, Text name) {
            return b.upsample(x, extents_of(factor), bilinear, name);
          },
          "x"_a, "factor"_a, "bilinear"_a = false, "name"_a = "");
}

void bind_shapes(nb::class_<Builder>& builder) {
  builder.def("concat", &Builder::concat, "values"_a, "axis"_a = 1, "name"_a = "")
      .def("split", &Builder::split, "x"_a, "sizes"_a, "axis"_a = 1, "name"_a = "")
      .def("pad", &Builder::pad, "x"_a, "begin"_a, "end"_a, "value"_a = 0.0F, "name"_a = "")
      .def("crop", &Builder::crop, "x"_a, "begin"_a, "end"_a, "name"_a = "")
      .def("reshape", &Builder::reshape, "x"_a, "shape"_a, "name"_a = "")
      .def("flatten", &Builder::flatten, "x"_a, "name"_a = "")
      .def("transpose", &Builder::transpose, "x"_a, "order"_a, "name"_a = "");
}

void bind_text(nb::class_<Builder>& builder) {
  builder
      .def(
          "embedding",
          [](Builder& b, Value tokens, Value weight, const Maybe& positions, Text name) {
            return b.embedding(tokens, weight, or_none(positions), name);
          },
          "tokens"_a, "weight"_a, "positions"_a = nb::none(), "name"_a = "")
      .def(
          "attention",
          [](Builder& b, Value q, Value k, Value v, const Maybe& mask, std::int64_t heads,
             std::int64_t kv_heads, bool causal, float scale, float dropout, Text name) {
            return b.attention(q, k, v, or_none(mask),
                               attention_options(heads, kv_heads, causal, scale, dropout), name);
          },
          "q"_a, "k"_a, "v"_a, "mask"_a = nb::none(), "heads"_a = 1, "kv_heads"_a = 0, "causal"_a = false,
          "scale"_a = 0.0F, "dropout"_a = 0.0F, "name"_a = "")
      .def(
          "gate",
          [](Builder& b, Text function, Value a, const Maybe& c, Text name) {
            return b.gate(
                choice<Gate>("gate", function,
                             {{"silu", Gate::silu}, {"gelu", Gate::gelu}, {"gelu_tanh", Gate::gelu_tanh}}),
                a, or_none(c), name);
          },
          "function"_a, "a"_a, "b"_a = nb::none(), "name"_a = "")
      .def("cross_entropy", &Builder::cross_entropy, "logits"_a, "labels"_a, "name"_a = "")
      .def("count_correct", &Builder::count_correct, "logits"_a, "labels"_a, "name"_a = "");
}

}  // namespace

void bind_builder(nb::module_& module) {
  nb::class_<Value>(module, "Value", "A value of a network under construction.")
      .def_ro("id", &Value::id)
      .def("__repr__", [](const Value& value) { return "Value(" + std::to_string(value.id) + ")"; });
  nb::class_<Builder> builder(module, "NetworkBuilder",
                              "Describes a network layer by layer. Names are PyTorch's module paths: "
                              "conv('layer1.0.conv1', ...) makes the parameter 'layer1.0.conv1.weight'.");
  bind_ports(builder);
  bind_products(builder);
  bind_norms(builder);
  bind_elements(builder);
  bind_windows(builder);
  bind_shapes(builder);
  bind_text(builder);
  bind_builder_ops(builder);
}

}  // namespace penstock::python
