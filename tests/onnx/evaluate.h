#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "models/network_graph.h"
#include "onnx/file_maker.h"
#include "onnx/onnx_import.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::onnx::testing {

using Floats = std::vector<float>;

/// A folder for files that goes away with the test.
class OnnxTest : public ::testing::Test {
 protected:
  OnnxTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("onnx_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~OnnxTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "model.onnx") const { return (folder_ / name).string(); }
  ImportedModel made(const FileMaker& file, const ImportOptions& options = {},
                     std::int64_t opset = 17) const {
    file.write(path(), opset);
    return load(path(), options);
  }
  std::filesystem::path folder_;
};

inline Floats counted(std::size_t count, float step = 0.25F) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i % 13) - 6) * step;
  return values;
}

/// What the network's outputs are on inputs of counted numbers, or on those given, by the plain kernels.
inline std::map<std::string, Floats> evaluate(const ImportedModel& model,
                                              const std::map<std::string, Floats>& given = {}) {
  const ir::Graph graph = lower::for_evaluation(models::graph_of(model.network()));
  ir::verify(graph);
  const auto backend = kernels::make_reference_backend();
  const lower::Executable executable = penstock::testing::plain_executable(graph, *backend);
  penstock::testing::SimpleRunner runner(executable, *backend);
  for (const ParameterInfo& parameter : model.network().parameters()) {
    std::int64_t count = 1;
    for (const std::int64_t extent : parameter.shape) count *= extent;
    Floats values(static_cast<std::size_t>(count));
    EXPECT_TRUE(model.has(parameter.name)) << parameter.name;
    model.read(parameter.name, 0, count, values.data());
    runner.set_state(parameter.name, values);
  }
  kernels::StepContext step;
  step.feed = [&](int input, void* to) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs[static_cast<std::size_t>(input)].tensor);
    const auto found = given.find(graph.inputs[static_cast<std::size_t>(input)].name);
    const Floats values =
        found != given.end() ? found->second : counted(static_cast<std::size_t>(tensor.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (tensor.dtype == ir::DType::f32) {
        static_cast<float*>(to)[i] = values[i];
      } else {
        static_cast<std::int32_t*>(to)[i] =
            found != given.end() ? static_cast<std::int32_t>(values[i]) : static_cast<std::int32_t>(i % 3);
      }
    }
  };
  runner.run(step);
  std::map<std::string, Floats> outputs;
  for (const ir::Port& port : graph.outputs) {
    const auto& bytes = runner.output(port.name);
    Floats values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    outputs[port.name] = values;
  }
  return outputs;
}

}  // namespace penstock::onnx::testing
