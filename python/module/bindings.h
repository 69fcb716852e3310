#pragma once

// What the files of the module share: one function a file that fills the module, and small conversions.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <penstock/network.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::python {

void bind_errors(nanobind::module_& module);
void bind_network(nanobind::module_& module);
void bind_builder(nanobind::module_& module);
void bind_builder_ops(nanobind::class_<NetworkBuilder>& builder);
void bind_options(nanobind::module_& module);
void bind_forecast(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_onnx(nanobind::module_& module);
void bind_training(nanobind::module_& module);

/// "float32", "int32", "uint8": NumPy's names.
const char* dtype_name(DType type);
DType dtype_of(const std::string& name);
std::string shape_text(const Extents& shape);

/// One number for all axes, or one an axis.
using Ints = std::variant<std::int64_t, Extents>;
inline Extents extents_of(const Ints& numbers) {
  if (const auto* one = std::get_if<std::int64_t>(&numbers)) return {*one};
  return std::get<Extents>(numbers);
}

/// Looks for one of the names of an option's values. Throws UserError that lists them.
template <typename Enum>
Enum choice(const char* option, const std::string& name,
            const std::vector<std::pair<std::string, Enum>>& values);
[[noreturn]] void refuse_choice(const char* option, const std::string& name,
                                const std::vector<std::string>& known);

template <typename Enum>
Enum choice(const char* option, const std::string& name,
            const std::vector<std::pair<std::string, Enum>>& values) {
  std::vector<std::string> known;
  for (const auto& [text, value] : values) {
    if (text == name) return value;
    known.push_back(text);
  }
  refuse_choice(option, name, known);
}

/// Throws what a signal's handler raised meanwhile: KeyboardInterrupt after Ctrl-C. With the lock held.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace penstock::python
