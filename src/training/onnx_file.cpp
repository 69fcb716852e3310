#include "training/onnx_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace penstock::training {

OnnxFile::OnnxFile(const ModelChoice& model, const TrainingOptions& options) : path_(model.name) {
  options_.loss = options.loss;
  options_.free_extent = model.image_size;
  options_.batch = options.batch;
  model_ = std::make_unique<onnx::ImportedModel>(load(options.batch));
  find_sizes();
}

onnx::ImportedModel OnnxFile::load(std::int64_t batch) const {
  onnx::ImportOptions options = options_;
  options.batch = batch;
  return onnx::load(path_, options);
}

Network OnnxFile::network(std::int64_t batch) const {
  return batch == options_.batch ? model_->network() : load(batch).network();
}

void OnnxFile::find_sizes() {
  info_.name = path_;
  const auto refuse = [&](const std::string& why) {
    throw UserError(fmt::format("{} {}; train it by a program with a session of its own", path_, why));
  };
  const std::vector<PortInfo> inputs = model_->network().inputs();
  if (inputs.size() != 2) {
    refuse(fmt::format("takes {} inputs with loss {}, where data has images and labels", inputs.size(),
                       options_.loss));
  }
  const PortInfo& images = inputs[0].dtype == DType::f32 ? inputs[0] : inputs[1];
  const PortInfo& labels = inputs[0].dtype == DType::f32 ? inputs[1] : inputs[0];
  const std::size_t rank = images.shape.size();
  if (images.dtype != DType::f32 || (rank != 4 && rank != 5))
    refuse(fmt::format("takes [{}] and no images [batch, channels, height, width]",
                       fmt::join(images.shape, ", ")));
  if (labels.dtype != DType::s32)
    refuse(fmt::format("takes '{}' as numbers, where data has labels", labels.name));
  images_ = images.name;
  labels_ = labels.name;
  info_.channels = images.shape[1];
  info_.image_size = images.shape.back();
  info_.volumetric = rank == 5;
  info_.per_pixel = labels.shape.size() > 1;
  info_.classes = 0;
  for (const PortInfo& output : model_->network().outputs()) {
    if (output.name == "logits") info_.classes = output.shape[1];
  }
  for (std::size_t i = 2; i < rank; ++i) {
    if (images.shape[i] != info_.image_size)
      refuse(fmt::format("takes images of {} that are not square", fmt::join(images.shape, " x ")));
  }
}

void fill_from(const onnx::ImportedModel& model, Session& session) {
  for (const StateInfo& state : session.state()) {
    if (state.kind == StateKind::optimizer || !model.has(state.name)) continue;
    session.fill(state.name, [&](std::span<float> values) {
      model.read(state.name, 0, static_cast<std::int64_t>(values.size()), values.data());
    });
  }
}

void save_again(const std::string& path_in, const std::string& path_out, Session& session) {
  std::set<std::string> names;
  for (const StateInfo& state : session.state()) {
    if (state.kind != StateKind::optimizer) names.insert(state.name);
  }
  onnx::save(path_in, path_out, [&](const std::string& name, const auto& use) {
    if (!names.contains(name)) return false;
    if (use) session.read(name, use);
    return true;
  });
}

}  // namespace penstock::training
