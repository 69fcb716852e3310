#pragma once

#include <memory>
#include <string>

#include "onnx/onnx_import.h"
#include "penstock/session.h"
#include "penstock/training.h"

namespace penstock::training {

/// Gives the session's parameters the file's values, piece by piece, each in the memory where it is kept.
void fill_from(const onnx::ImportedModel& model, Session& session);
/// Writes the file `path_in` again as `path_out`, with the session's weights.
void save_again(const std::string& path_in, const std::string& path_out, Session& session);

/// An ONNX file as the model of a run: what its network takes, its weights, and back into a file.
class OnnxFile {
 public:
  /// Reads the file for the options' batch. Throws UserError where it is no network of images and labels.
  OnnxFile(const ModelChoice& model, const TrainingOptions& options);

  Network network(std::int64_t batch) const;
  /// Sizes of what it takes, as of a built-in model.
  const ModelInfo& info() const { return info_; }
  const std::string& images() const { return images_; }
  const std::string& labels() const { return labels_; }

  void fill(Session& session) const { fill_from(*model_, session); }
  void save(Session& session, const std::string& path) const { save_again(path_, path, session); }

 private:
  onnx::ImportedModel load(std::int64_t batch) const;
  void find_sizes();

  std::string path_;
  onnx::ImportOptions options_;
  std::unique_ptr<onnx::ImportedModel> model_;
  ModelInfo info_;
  std::string images_, labels_;
};

}  // namespace penstock::training
