// Runs cases of ONNX's own tests: each argument is a folder with model.onnx, test_data_set_*/input_N.pb and
// output_N.pb, and tolerance (relative and absolute). Prints one line a case: "pass NAME",
// "refused NAME: why" or "wrong NAME: how".

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "base/error.h"
#include "lower/lower.h"
#include "models/network_graph.h"
#include "onnx/model.h"
#include "onnx/onnx_import.h"
#include "support/simple_runner.h"

namespace penstock::onnx {
namespace {

namespace fs = std::filesystem;

struct Array {
  ElementType type = ElementType::none;
  Extents dims;
  std::vector<double> values;
};

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Array read_array(const fs::path& path) {
  const Model file = read_tensor_file(path.string());
  const TensorInfo& tensor = file.initializers[0];
  if (element_bytes(tensor.type) == 0)
    throw UserError(fmt::format("its data is of {}, which is not supported", type_name(tensor.type)));
  Array array{tensor.type, tensor.dims, {}};
  if (is_floating(tensor.type)) {
    std::vector<float> values(static_cast<std::size_t>(tensor.elements));
    read_floats(file, tensor, 0, tensor.elements, values.data());
    array.values.assign(values.begin(), values.end());
  } else {
    for (const std::int64_t value : read_integers(file, tensor))
      array.values.push_back(static_cast<double>(value));
  }
  return array;
}

std::vector<Array> read_arrays(const fs::path& folder, const std::string& kind) {
  std::vector<Array> arrays;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) break;
    arrays.push_back(read_array(path));
  }
  return arrays;
}

/// Which inputs an import treats as constants: none, integers, all that are short.
enum class Known { none, integers, all_short };

ImportOptions options_for(const Model& model, const std::vector<Array>& inputs, Known known) {
  ImportOptions options;
  if (known == Known::none) return options;
  for (std::size_t i = 0; i < model.inputs.size() && i < inputs.size(); ++i) {
    const Array& array = inputs[i];
    const bool is_short = array.dims.size() <= 1 && array.values.size() <= 64;
    if (!is_short || (known == Known::integers && is_floating(array.type))) continue;
    options.known[model.inputs[i].name] = {array.dims, array.values};
  }
  return options;
}

ImportedModel load_for(const fs::path& path, const Model& model, const std::vector<Array>& inputs) {
  for (const Known known : {Known::none, Known::integers}) {
    try {
      return load(path.string(), options_for(model, inputs, known));
    } catch (const UserError& error) {
      if (std::string(error.what()).find("must be known before the step") == std::string::npos) throw;
    }
  }
  return load(path.string(), options_for(model, inputs, Known::all_short));
}

/// Writes an array as elements of another type.
void write(const Array& array, ir::DType dtype, void* to) {
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const double value = array.values[i];
    if (dtype == ir::DType::f32) static_cast<float*>(to)[i] = static_cast<float>(value);
    if (dtype == ir::DType::s32)
      static_cast<std::int32_t*>(to)[i] =
          static_cast<std::int32_t>(std::fmax(-2147483648.0, std::fmin(2147483647.0, value)));
    if (dtype == ir::DType::u8) static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(value);
  }
}

std::vector<double> read_elements(const std::vector<std::byte>& bytes, ir::DType dtype) {
  std::vector<double> values;
  const std::size_t width = dtype == ir::DType::u8 ? 1 : 4;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    float real = 0;
    std::int32_t integer = 0;
    std::memcpy(&real, bytes.data() + at, dtype == ir::DType::f32 ? 4 : 0);
    std::memcpy(&integer, bytes.data() + at, dtype == ir::DType::f32 ? 0 : width);
    values.push_back(dtype == ir::DType::f32 ? real : integer);
  }
  return values;
}

/// As the file's type holds it: a backend gives arrays of the types that the model says.
double rounded(double value, ElementType type) {
  if (!is_floating(type)) return value;
  std::uint8_t bytes[8] = {};
  encode_float(type, static_cast<float>(value), bytes);
  return decode_float(type, bytes);
}

using Results = std::map<std::string, std::vector<double>>;

/// Evaluates the network by the kernels that sessions use.
Results run(const ImportedModel& imported, const Model& model, const std::vector<Array>& inputs) {
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable executable =
      lower::lower(lower::fuse(lower::for_evaluation(models::graph_of(imported.network()))), *backend, {});
  const ir::Graph& graph = executable.graph;
  penstock::testing::SimpleRunner runner(executable, *backend);
  for (const std::string& name : runner.state_names()) {
    std::vector<float> values(runner.state(name).size());
    imported.read(name, 0, static_cast<std::int64_t>(values.size()), values.data());
    runner.set_state(name, values);
  }
  std::map<std::string, const Array*> by_name;
  for (std::size_t i = 0; i < model.inputs.size() && i < inputs.size(); ++i)
    by_name[model.inputs[i].name] = &inputs[i];
  kernels::StepContext step;
  step.feed = [&](int input, void* to) {
    const ir::Port& port = graph.inputs[static_cast<std::size_t>(input)];
    write(*by_name.at(port.name), graph.tensor(port.tensor).dtype, to);
  };
  runner.run(step);
  Results results;
  for (const ir::Port& port : graph.outputs)
    results[port.name] = read_elements(runner.output(port.name), graph.tensor(port.tensor).dtype);
  return results;
}

void compare(const std::string& name, const OutputInfo& info, const std::vector<double>& have,
             const Array& want, double relative, double absolute) {
  if (info.dims != want.dims) {
    std::string a, b;
    for (const auto d : info.dims) a += std::to_string(d) + " ";
    for (const auto d : want.dims) b += std::to_string(d) + " ";
    throw Wrong(fmt::format("output {} has extents {}where {}are needed", name, a, b));
  }
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const double a = rounded(have.at(i), want.type), b = want.values[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::fabs(a - b) <= absolute + relative * std::fabs(b)) continue;
    throw Wrong(fmt::format("output {} element {} is {} where {} is needed", name, i, a, b));
  }
}

void run_case(const fs::path& folder) {
  double relative = 1e-3, absolute = 1e-7;
  std::ifstream(folder / "tolerance") >> relative >> absolute;
  const Model model = read_model((folder / "model.onnx").string());
  for (int set = 0;; ++set) {
    const fs::path data = folder / fmt::format("test_data_set_{}", set);
    if (!fs::exists(data)) break;
    const std::vector<Array> inputs = read_arrays(data, "input"), outputs = read_arrays(data, "output");
    if (outputs.size() != model.outputs.size()) throw UserError("its data is not all tensors");
    const ImportedModel imported = load_for(folder / "model.onnx", model, inputs);
    const auto have = run(imported, model, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = model.outputs[i].name;
      const auto found = have.find(name);
      if (found == have.end()) throw Wrong("output " + name + " is missing");
      compare(name, imported.outputs().at(name), found->second, outputs[i], relative, absolute);
    }
  }
}

std::string line_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  try {
    run_case(folder);
    return "pass " + name;
  } catch (const Wrong& error) {
    return fmt::format("wrong {}: {}", name, error.what());
  } catch (const UserError& error) {
    return fmt::format("refused {}: {}", name, error.what());
  } catch (const std::exception& error) {
    return fmt::format("wrong {}: fails with {}", name, error.what());
  }
}

}  // namespace
}  // namespace penstock::onnx

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::cout << penstock::onnx::line_of(argv[i]) << std::endl;
  return 0;
}
