#include <penstock/penstock.h>

#include "bindings.h"

NB_MODULE(_core, module) {
  using namespace penstock::python;
  // The interpreter may end with sessions that nobody closed; that is no mistake of theirs.
  nanobind::set_leak_warnings(false);
  module.doc() = "The engine of Penstock; import penstock instead.";
  bind_errors(module);
  bind_network(module);
  bind_builder(module);
  bind_options(module);
  bind_forecast(module);
  bind_session(module);
  bind_onnx(module);
  bind_training(module);
  module.def("version", &penstock::version);
}
