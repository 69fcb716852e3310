#pragma once

// The training loop: data, schedule, checkpoints, progress, evaluation around a session.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/network.h"
#include "penstock/options.h"
#include "penstock/session.h"

namespace penstock {

/// What is trained: a built-in model by name, with sizes of 0 as the data or the model has them; an ONNX file
/// by its path, with the weights that are in it; or a network of the caller's own, made for the sizes that
/// data and options come to.
struct ModelChoice {
  std::string name;
  std::int64_t channels = 0, image_size = 0, classes = 0;  ///< classes of text: the vocabulary
  /// Empty: the built-in model of that name. Must have inputs "images" and "labels".
  std::function<Network(const ModelOptions& sizes)> make;
  std::int64_t sequence = 0;  ///< of text: tokens of a sample
};

/// How the learning rate changes over the steps.
struct Schedule {
  enum class Kind : std::uint8_t { constant, step, cosine };
  Kind kind = Kind::constant;
  std::int64_t every = 1;   ///< of step: so many steps between two changes
  double factor = 0.1;      ///< of step: by how much
  std::int64_t warmup = 0;  ///< linear over the first steps

  /// The learning rate of a step of `steps` in all, where `base` is what the optimizer has.
  double at(std::int64_t step, std::int64_t steps, double base) const;
};

/// What a training loop tells while it runs.
struct Progress {
  std::int64_t step = 0;   ///< steps done
  std::int64_t steps = 0;  ///< steps in all
  std::int64_t epoch = 0;
  double loss = 0;
  double gradient_norm = 0;  ///< of the last step; 0: gradients are not clipped
  double step_seconds = 0;
  double samples_per_second = 0;
  std::int64_t tokens_per_sample = 0;  ///< of text; 0: samples are images
  double learning_rate = 0;
  double seconds_left = 0;
  StepStats stats;                ///< of the last step
  std::int64_t memory_bytes = 0;  ///< the process's resident memory now
  std::int64_t budget_bytes = 0;  ///< 0: none was named
};

struct TrainingOptions {
  std::string data = "synthetic";
  std::int64_t batch = 32;  ///< of each rank
  std::int64_t steps = 0;   ///< either steps
  std::int64_t epochs = 0;  ///< or epochs
  bool shuffle = true;
  bool evaluate = false;  ///< on the test split, at the end
  Optimizer optimizer = Optimizer::sgd(0, 0.9F);
  std::string loss = "cross_entropy";  ///< of an ONNX file: or output, if the file itself has one
  /// Patterns of parameters that are not trained, see Network::freeze().
  std::vector<std::string> freeze;
  Schedule schedule;

  std::string init_file;  ///< safetensors to start from, or a folder of the hub with them
  /// Safetensors to write at the end; of an ONNX file also another one (.onnx), of text also a folder, with a
  /// config.json.
  std::string save_file;
  std::string checkpoint_dir;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only at the end
  int keep_checkpoints = 1;           ///< the newest so many stay
  std::string resume_dir;
  std::string trace_file;   ///< the first steps as a trace for Perfetto and chrome://tracing
  std::string report_file;  ///< a page about the run, in HTML
  std::string command;      ///< what the report says the run was started by

  SessionOptions session;  ///< training, evaluation, record and reserved_bytes are set by the loop
  std::function<void(const std::string&, int)> on_rank_failure;  ///< see Ranks::side_by_side()
  std::function<void(const Progress&)> on_step;
  std::function<bool()>
      stop_requested;         ///< asked after each step: true ends training there, with a checkpoint
  bool settle_steps = false;  ///< no transfer is under way while on_step runs: it may stop the process
};

struct TrainingResult {
  std::string model;
  std::int64_t batch = 0, steps = 0;
  int threads = 0;
  std::uint64_t seed = 0;
  std::vector<double> loss;           ///< one a step, see kept_every
  std::vector<double> gradient_norm;  ///< the same where gradients are clipped
  std::vector<double> step_seconds;   ///< one a step, see kept_every
  std::int64_t kept_every = 1;        ///< of more than 16,384 steps only one in so many is kept, and the last
  double train_seconds = 0;           ///< of all steps of this run
  double samples_per_second = 0;      ///< median of the steps after the first
  double startup_seconds = 0;         ///< before the first step
  double accuracy = -1;               ///< on the test split; negative: not evaluated
  std::int64_t sequence = 0;          ///< of text: tokens of a sample
  double validation_loss = -1;        ///< of text: the mean over all tokens; negative: not evaluated
  std::int64_t test_samples = 0;
  std::int64_t skipped_samples = 0;  ///< that did not decode
  std::int64_t peak_rss_bytes = 0;
  std::string weights_sha256;
  bool stopped = false;  ///< before the last step, because it was asked to

  Forecast plan;      ///< the last one
  StepStats typical;  ///< per step, medians
  std::string tier;
  std::int64_t pool_peak_bytes = 0;
  std::int64_t fragmentation_bytes = 0;
  std::map<std::string, std::int64_t> peak_by_tag;
  std::int64_t replans = 0;  ///< how often the step was planned again

  int ranks = 1;
  std::int64_t effective_batch = 0;               ///< of all ranks
  std::vector<std::int64_t> rank_peak_rss_bytes;  ///< by rank
  std::int64_t sent_bytes = 0;                    ///< by this rank per step
  double reduce_seconds = 0;                      ///< per step: gradients were on their way
  double reduce_wait_seconds = 0;                 ///< per step: of these, compute stood still
};

/// Trains and returns what happened.
TrainingResult train(const ModelChoice& model, const TrainingOptions& options);

/// Accuracy of `options.init_file` (or of a checkpoint) on the data's test split; of text, the loss.
TrainingResult evaluate(const ModelChoice& model, const TrainingOptions& options);

/// What train() would do with the same options.
ForecastTable plan_training(const ModelChoice& model, const TrainingOptions& options,
                            const ForecastRequest& request = {});

}  // namespace penstock
