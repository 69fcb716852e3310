#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "bindings.h"
#include "engine.h"
#include "onnx/onnx_import.h"
#include "training/onnx_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using onnx::ImportedModel;
using Known = std::map<std::string, std::pair<Extents, std::vector<double>>>;

ImportedModel load(const std::string& path, std::int64_t batch, std::int64_t free_extent,
                   const std::string& loss, const Known& known) {
  onnx::ImportOptions options;
  options.batch = batch;
  options.free_extent = free_extent;
  options.loss = loss;
  for (const auto& [name, value] : known) options.known[name] = {value.first, value.second};
  const nb::gil_scoped_release unlocked;
  return onnx::load(path, options);
}

void fill(const ImportedModel& model, Engine& engine) {
  engine.call([&](Session& session) { training::fill_from(model, session); });
}

void save(const std::string& path_in, const std::string& path_out, Engine& engine) {
  engine.call([&](Session& session) { training::save_again(path_in, path_out, session); });
}

}  // namespace

void bind_onnx(nb::module_& module) {
  nb::class_<ImportedModel>(module, "OnnxModel", "An ONNX file as a network, with its weights.")
      .def_static("load", &load, "path"_a, "batch"_a = 0, "free_extent"_a = 0, "loss"_a = "",
                  "known"_a = Known())
      .def_prop_ro("network", &ImportedModel::network)
      .def_prop_ro("outputs",
                   [](const ImportedModel& model) {
                     nb::dict outputs;
                     for (const auto& [name, info] : model.outputs())
                       outputs[name.c_str()] = nb::make_tuple(info.dims, info.element_type);
                     return outputs;
                   })
      .def("fill", &fill, "engine"_a);
  module.def("is_onnx_path", &onnx::is_onnx_path, "path"_a);
  module.def("save_onnx", &save, "path_in"_a, "path_out"_a, "engine"_a);
}

}  // namespace penstock::python
