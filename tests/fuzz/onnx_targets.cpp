#include "fuzz/memory_folder.h"
#include "fuzz/targets.h"
#include "onnx/onnx_import.h"

namespace penstock::fuzz {

/// The reader, shape arithmetic and all functions of ops; of what is a network, the first values.
void read_onnx(const std::string& input) {
  MemoryFolder folder;
  folder.put("a.onnx", input);
  read_all(folder, [&] {
    onnx::ImportOptions options;
    options.batch = 2;
    options.free_extent = 3;
    const onnx::ImportedModel model = onnx::load("a.onnx", options);
    for (const ParameterInfo& parameter : model.network().parameters()) {
      if (!model.has(parameter.name)) continue;
      std::int64_t count = 1;
      for (const std::int64_t extent : parameter.shape) count *= extent;
      std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 16)));
      model.read(parameter.name, 0, static_cast<std::int64_t>(values.size()), values.data());
    }
  });
}

}  // namespace penstock::fuzz
