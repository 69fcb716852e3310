#include <penstock/errors.h>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {

const char* dtype_name(DType type) {
  return type == DType::f32 ? "float32" : type == DType::s32 ? "int32" : "uint8";
}

DType dtype_of(const std::string& name) {
  return choice<DType>("dtype", name, {{"float32", DType::f32}, {"int32", DType::s32}, {"uint8", DType::u8}});
}

std::string shape_text(const Extents& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

namespace {

Network make_model(const std::string& name, std::int64_t batch, std::int64_t channels,
                   std::int64_t image_size, std::int64_t classes, double width, bool dropout,
                   std::int64_t sequence) {
  ModelOptions options;
  options.batch = batch;
  options.channels = channels;
  options.image_size = image_size;
  options.classes = classes;
  options.width = width;
  options.dropout = dropout;
  options.sequence = sequence;
  return Network::model(name, options);
}

nb::tuple tuple_of(const Extents& extents) {
  nb::list list;
  for (const std::int64_t extent : extents) list.append(extent);
  return nb::tuple(list);
}

std::string describe(const Network& network) {
  std::string text = "Network '" + network.name() + "':";
  for (const PortInfo& port : network.inputs())
    text += " " + port.name + " " + dtype_name(port.dtype) + shape_text(port.shape) + ",";
  text += " " + std::to_string(network.parameters().size()) + " tensors of state";
  return text;
}

}  // namespace

void bind_network(nb::module_& module) {
  nb::class_<ModelInfo>(module, "ModelInfo", "A built-in model and its defaults.")
      .def_ro("name", &ModelInfo::name)
      .def_ro("description", &ModelInfo::description)
      .def_ro("channels", &ModelInfo::channels)
      .def_ro("image_size", &ModelInfo::image_size)
      .def_ro("classes", &ModelInfo::classes)
      .def_ro("per_pixel", &ModelInfo::per_pixel)
      .def_ro("volumetric", &ModelInfo::volumetric)
      .def("__repr__", [](const ModelInfo& info) { return info.name + ": " + info.description; });

  nb::class_<PortInfo>(module, "PortInfo", "A value that is given to a network or read back.")
      .def_ro("name", &PortInfo::name)
      .def_prop_ro("dtype", [](const PortInfo& port) { return std::string(dtype_name(port.dtype)); })
      .def_prop_ro("shape", [](const PortInfo& port) { return tuple_of(port.shape); })
      .def_ro("evaluation_only", &PortInfo::evaluation_only)
      .def("__repr__", [](const PortInfo& port) {
        return port.name + ": " + dtype_name(port.dtype) + " " + shape_text(port.shape);
      });

  nb::class_<ParameterInfo>(module, "ParameterInfo", "A parameter, or a buffer such as running statistics.")
      .def_ro("name", &ParameterInfo::name)
      .def_prop_ro("shape", [](const ParameterInfo& info) { return tuple_of(info.shape); })
      .def_ro("trained", &ParameterInfo::trained)
      .def("__repr__", [](const ParameterInfo& info) { return info.name + ": " + shape_text(info.shape); });

  nb::class_<Network>(module, "Network",
                      "A network for one batch size: an immutable description. Made by a NetworkBuilder, or "
                      "by Network.model() from the built-in ones.")
      .def_static("model", &make_model, "name"_a, "batch"_a = 1, "channels"_a = 0, "image_size"_a = 0,
                  "classes"_a = 0, "width"_a = 1.0, "dropout"_a = true, "sequence"_a = 0,
                  "A built-in model; a size of 0 is the model's own default. `sequence`: of text, the tokens "
                  "of a sample.")
      .def_prop_ro("name", &Network::name)
      .def_prop_ro("inputs", &Network::inputs)
      .def_prop_ro("outputs", &Network::outputs)
      .def_prop_ro("parameters", &Network::parameters)
      .def_prop_ro("has_loss", &Network::has_loss)
      .def("freeze", &Network::freeze, "pattern"_a,
           "The same network with the parameters whose names match frozen; * stands for any letters.")
      .def("__repr__", &describe);

  module.def("list_models", &list_models);
  module.def("find_model", &find_model, "name"_a);
}

}  // namespace penstock::python
