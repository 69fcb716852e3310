#include "onnx/onnx_import.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "onnx/importer.h"
#include "onnx/model.h"

namespace penstock::onnx {

ImportedModel::ImportedModel(Network network, std::shared_ptr<const Model> model,
                             std::map<std::string, std::vector<float>> made,
                             std::map<std::string, OutputInfo> outputs)
    : network_(std::move(network)),
      model_(std::move(model)),
      made_(std::move(made)),
      outputs_(std::move(outputs)) {
  for (std::size_t i = 0; i < model_->initializers.size(); ++i) {
    const TensorInfo& tensor = model_->initializers[i];
    if (is_floating(tensor.type)) initializers_.emplace(tensor.name, i);
  }
}

bool ImportedModel::has(const std::string& parameter) const {
  return made_.contains(parameter) || initializers_.contains(parameter);
}

void ImportedModel::read(const std::string& parameter, std::int64_t begin, std::int64_t count,
                         float* to) const {
  const auto made = made_.find(parameter);
  if (made != made_.end()) {
    const auto size = static_cast<std::int64_t>(made->second.size());
    require(begin >= 0 && count >= 0 && count <= size - begin, "onnx: beyond a constant");
    std::copy_n(made->second.begin() + begin, count, to);
    return;
  }
  const auto found = initializers_.find(parameter);
  require(found != initializers_.end(), "onnx: there is no such parameter");
  read_floats(*model_, model_->initializers[found->second], begin, count, to);
}

bool is_onnx_path(const std::string& path) {
  return path.ends_with(".onnx");
}

ImportedModel load(const std::string& path, const ImportOptions& options) {
  auto model = std::make_shared<Model>(read_model(path));
  Importer importer(*model, options);
  try {
    Network network = importer.run();
    return {std::move(network), model, importer.take_made(), importer.take_outputs()};
  } catch (const UserError& error) {
    const std::string text = error.what();
    if (text.starts_with(path)) throw;
    // The builder names the layer and not the file.
    throw UserError(fmt::format("{}: {}", path, printable(text)));
  }
}

}  // namespace penstock::onnx
