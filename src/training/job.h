#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/sampler.h"
#include "data/tokens.h"
#include "models/text_catalog.h"
#include "penstock/training.h"
#include "training/feed.h"
#include "training/onnx_file.h"

namespace penstock::training {

enum class Purpose : std::uint8_t { train, evaluate, plan };

/// What a run of `train`, `evaluate` or `plan` works on, as it follows from the options: data, sizes, ranks,
/// where it starts. Model and options must outlive it. One thread.
struct Job {
  Job(const ModelChoice& of_model, const TrainingOptions& by_options, Purpose purpose);

  /// Checks the options, opens the data and looks at the checkpoint. Throws UserError.
  void set_up();
  /// The network for a batch of a rank.
  /// The network of a micro-batch of so many samples.
  Network network(std::int64_t samples) const;
  /// What the session is told: the user's options and what this job adds.
  SessionOptions session_options() const;

  /// Samples of a step of all ranks.
  std::int64_t micro_batch() const { return options.batch / options.session.accumulate; }
  std::int64_t whole_batch() const { return options.batch * ranks->size(); }
  /// Whether the samples are text, and no images.
  bool is_text() const { return text.has_value(); }
  /// Of the training split.
  Sampler sampler() const;
  /// What all ranks must agree on before they train, by what a user calls it.
  std::map<std::string, std::string> start() const;
  /// From where the run begins.
  std::unique_ptr<Feed> training_feed() const;
  /// Of the split that is kept back for evaluation, in its order, the last batch filled up.
  std::unique_ptr<Feed> evaluation_feed() const;
  Sampler evaluation_sampler() const;
  std::int64_t evaluation_samples() const;
  /// What a checkpoint says of this run, to be the same when it is resumed.
  std::map<std::string, std::string> facts(const DataPosition& next) const;

  /// Whether weights are saved as a folder: text models are, where the path is one.
  bool saves_folder() const;

  /// Tells the user something; rank 0 does.
  void note(const std::string& line) const;
  /// Tells that a part of the run is over.
  void phase(const char* name, double seconds, const std::string& detail) const;

  const ModelChoice& model;
  const TrainingOptions& options;
  const Purpose purpose;
  const bool training;
  const bool evaluating;
  const std::shared_ptr<Ranks> ranks;
  std::unique_ptr<OnnxFile> file;        ///< where the model is one
  InputNames inputs;                     ///< what a network of images calls them
  std::optional<models::TextInfo> text;  ///< where the model is one of text
  std::int64_t sequence = 0;             ///< tokens of a sample of text
  ModelOptions sizes;
  DataSplits data;     ///< of images
  TokenSplits tokens;  ///< of text
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;
  std::int64_t steps = 0;
  DataPosition position;

 private:
  /// Whether the model is an ONNX file.
  bool is_file() const;
  /// Images that the loader holds: a slice where the batch is cut; 0: a batch.
  std::int64_t read_ahead() const;
  void check_options() const;
  void check_outputs() const;
  void check_fits() const;
  /// Data and network agree on sizes: what the user says goes first, then what the data has, then the model's
  /// own.
  void open();
  void open_file();
  void open_images();
  void open_text();
  void resume();
};

}  // namespace penstock::training
