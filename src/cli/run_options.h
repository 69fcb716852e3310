#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/progress.h"
#include "penstock/penstock.h"

namespace penstock::cli {

/// What `train`, `eval` and `plan` are told on the command line: words, as they were typed.
struct RunWords {
  std::string memory, policy, profile = "cached", kernels = "fixed", tier = "disk", tier_bandwidth,
                              swap_space, verify = "sampled", pool = "auto", window, bucket, in_flight,
                              slice = "auto", bands = "auto";
  std::string optimizer = "sgd", schedule = "constant", decay = "all", betas, state_dtype = "f32";
  std::int64_t batch = 0;  ///< 0: as usual for the model
};

struct RunOptions {
  ModelChoice model;
  TrainingOptions options;
  RunWords words;
  std::string json_file;
  bool quiet = false;
  bool take_turns = false;
  bool verbose = false;
};

/// From the words to typed options. Throws UserError. To be called once all options are parsed and ranks are
/// joined.
void read_words(RunOptions& run);

Detail detail_of(const RunOptions& run);

/// Model, data, sizes, memory: what all of them take.
void add_common_options(CLI::App& command, RunOptions& run);

/// Joins the other ranks and sees that only rank 0 speaks, or whichever fails.
void join(RunOptions& run);

/// Writes the JSON file where one is named: rank 0 alone.
void write_result(const RunOptions& run, const TrainingResult& result);

/// The update rule, which the step contains: what `train` and `plan` take.
void add_optimizer_options(CLI::App& command, RunOptions& run);

/// "validation: loss 3.2145, perplexity 24.89 on 102400 tokens"
std::string validation_text(const TrainingResult& result);

/// The result as JSON text; the keys are a contract with other programs.
std::string result_json(const TrainingResult& result);

}  // namespace penstock::cli
