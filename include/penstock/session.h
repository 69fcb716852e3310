#pragma once

// A session: a network with its state, trained step by step within a memory budget.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/errors.h"
#include "penstock/network.h"
#include "penstock/options.h"
#include "penstock/ranks.h"
#include "penstock/step_stats.h"

namespace penstock {

/// Where samples `first` to `first + count` of an input go: entries of its first axis.
struct InputPart {
  void* to = nullptr;
  std::int64_t first = 0, count = 0;
};

/// What a caller gives for one input of the network: memory of its own, in row-major order. Or a function
/// that writes the values. It is called in the step once for each part of the batch, in their order; a batch
/// that is not cut is one part.
struct InputArray {
  InputArray() = default;
  InputArray(std::span<const float> values)
      : dtype(DType::f32), data(values.data()), elements(values.size()) {}
  InputArray(std::span<const std::int32_t> values)
      : dtype(DType::s32), data(values.data()), elements(values.size()) {}
  InputArray(const std::vector<float>& values) : InputArray(std::span<const float>(values)) {}
  InputArray(const std::vector<std::int32_t>& values) : InputArray(std::span<const std::int32_t>(values)) {}
  InputArray(DType type, const void* values, std::size_t count)
      : dtype(type), data(values), elements(count) {}
  InputArray(std::function<void(const InputPart& part)> writer) : fill(std::move(writer)) {}

  DType dtype = DType::f32;
  const void* data = nullptr;
  std::size_t elements = 0;
  std::function<void(const InputPart& part)> fill;
};

/// By the names of the network's inputs.
using Inputs = std::map<std::string, InputArray>;

/// What a step read back of one output.
struct OutputArray {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::span<const float> floats() const;
  std::span<const std::int32_t> integers() const;
};

/// What a step gave.
struct StepResult {
  double loss = 0;           ///< with ranks: the mean over all of them
  double gradient_norm = 0;  ///< over all parameters, before they were clipped; 0: nothing is clipped
  std::map<std::string, OutputArray> outputs;
  StepStats stats;
};

enum class StateKind : std::uint8_t { parameter, statistic, optimizer };

/// One tensor of a session's state, as it is read and written: row-major float32.
struct StateInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  StateKind kind = StateKind::parameter;

  std::int64_t elements() const;
};

/// What training within one budget is like. Times are predicted.
struct Forecast {
  std::int64_t budget_bytes = 0;
  BudgetScope scope = BudgetScope::process;
  bool feasible = false;  ///< otherwise nothing below is known but for swap_file_bytes
  std::string policy, pool;
  std::map<std::string, std::int64_t> beside_bytes;  ///< what the pool does not get, by tag
  std::int64_t pool_bytes = 0;                       ///< of tensors and scratch: the planned peak
  std::int64_t in_memory_bytes = 0;                  ///< of the whole, if everything stayed in memory
  StepStats step;                    ///< of a step; all zero where nothing was measured or estimated
  double in_memory_share = 0;        ///< of the speed in memory; 0: not known
  double bound_seconds = 0;          ///< no plan is faster; 0: not known
  std::int64_t swap_file_bytes = 0;  ///< not feasible: with so much swap space it would be; 0: not by that
  double written_bytes_per_day = 0;
  std::int64_t recomputed_ops = 0;
  std::string profile_source;  ///< measured, cached, a file's name, estimate; empty: none
  double plan_seconds = 0;     ///< what planning took
  double link_bandwidth = 0;   ///< between ranks: bytes per second each way
  double link_latency_seconds = 0;

  std::int64_t overhead_bytes() const {
    std::int64_t sum = 0;
    for (const auto& [tag, bytes] : beside_bytes) sum += bytes;
    return sum;
  }
  std::int64_t peak_bytes() const { return overhead_bytes() + pool_bytes; }
};

/// What a report says of a run beside what the session knows.
struct RunStory {
  std::string title;    ///< the network
  std::string command;  ///< what it was started by
  std::int64_t batch = 0;
  std::string weights_sha256;
  std::vector<double> loss;          ///< one a step, or of one in so many and of the last
  std::vector<double> step_seconds;  ///< one a step
  std::int64_t kept_every = 1;       ///< so many
  std::int64_t steps = 0;            ///< in all; 0: as many as there are losses
  StepStats typical;                 ///< of a step, medians
  double startup_seconds = 0;
  std::int64_t peak_rss_bytes = 0;  ///< of the process; 0: what the kernel says when the report is written
  double accuracy = -1;             ///< negative: not measured
  std::int64_t test_samples = 0;
  std::vector<std::pair<std::int64_t, double>> accuracy_by_step;
  std::vector<std::string> notes;
};

/// What a checkpoint says beside the state's values.
struct CheckpointFacts {
  std::int64_t step = 0;  ///< steps done
  std::uint64_t seed = 0;
  std::map<std::string, std::string> facts;  ///< what Session::save_checkpoint() was given
};

/// Throws UserError if there is no checkpoint in the folder or it is damaged.
CheckpointFacts checkpoint_facts(const std::string& dir);

/// Samples of a slice where the step of this network runs on slices of the batch; 0: it is not cut.
std::int64_t slice_samples(const Network& network, const MemoryOptions& options);

/// Trains a network within a memory budget. One thread at a time may call it, and not from inside one of its
/// own callbacks. After a RunError only the destructor may be called. Changes nothing of the process that it
/// does not change back.
class Session {
 public:
  /// Builds, plans, takes memory and disk space, and initialises the state from the seed. Throws UserError
  /// where the budget is too small: with the smallest that works.
  Session(Network network, const Optimizer& optimizer, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Trains once. Every input of the network must be given, each of its type and size: of as many
  /// micro-batches as a step has, one behind the other, and outputs come so too.
  StepResult step(const Inputs& inputs);
  /// Computes the outputs without training: dropout is off, batch norm uses the running statistics. Inputs
  /// may be left out; outputs that depend on them are left out of the result then.
  StepResult run(const Inputs& inputs);

  double learning_rate() const;
  void set_learning_rate(double learning_rate);
  /// Steps trained so far: part of what is random, and Adam's t.
  std::int64_t steps_done() const;
  void set_steps_done(std::int64_t steps);

  /// All tensors of the state, sorted by name.
  std::vector<StateInfo> state() const;
  /// Lets `use` see a tensor's values, wherever they are, within the budget.
  void read(const std::string& name, const std::function<void(std::span<const float>)>& use);
  void write(const std::string& name, std::span<const float> values);
  /// Lets `writer` write a tensor's values to where they are kept; it must write all of them.
  void fill(const std::string& name, const std::function<void(std::span<float>)>& writer);
  /// SHA-256 over the whole state, sorted by name.
  std::string state_sha256();
  /// Parameters and statistics as a safetensors file, which PyTorch loads, and back. load() names what is
  /// missing, not known or of another shape, and changes nothing then.
  void save(const std::string& path);
  void load(const std::string& path);
  /// The whole state with the steps done and `info`, in a folder; and back. Training goes on bit for bit. Up
  /// to keep - 1 earlier ones stay beside the newest; a state that has diverged replaces none.
  void save_checkpoint(const std::string& dir, const std::map<std::string, std::string>& info = {},
                       int keep = 1);
  /// `with_optimizer` false: parameters and statistics only.
  void load_checkpoint(const std::string& dir, bool with_optimizer = true);

  /// The plan in use and what it promises.
  Forecast plan() const;
  /// As `penstock plan` says it.
  std::string plan_text() const;
  /// The plan as a file, for MemoryOptions::plan_file.
  void save_plan(const std::string& path) const;
  /// Why a tensor, or what an op makes, is kept, swapped or computed again.
  std::vector<std::string> explain(const std::string& name) const;

  /// Waits until nothing is under way between memory and tier.
  void settle();
  /// How the steps so far compare with the prediction; empty where they are not slower.
  std::string why_slower() const;
  /// What the session itself saw of memory: the ledger at its peak by tag, the pool's peak, what was lost to
  /// gaps.
  std::map<std::string, std::int64_t> peak_bytes_by_tag() const;
  std::int64_t pool_peak_bytes() const;
  std::int64_t lost_bytes() const;
  std::int64_t replans() const;
  std::string tier_description() const;
  int threads() const;
  const Network& network() const;

  /// The recorded steps for Perfetto and chrome://tracing, and a page about the run. Both take memory of
  /// their own, so the session gives its pool back first and can do nothing else afterwards.
  void finish(const std::string& trace_file, const std::string& report_file, const RunStory& story);
  /// The same while the session lives on: what writing takes meanwhile is beside the budget.
  void write_report(const std::string& trace_file, const std::string& report_file, const RunStory& story);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Makes the network for a batch; where several batches are tried.
using NetworkOfBatch = std::function<Network(std::int64_t batch)>;

/// Batches of any size fit.
inline constexpr std::int64_t kAnyBatch = std::numeric_limits<std::int64_t>::max();

/// What forecast() found out.
struct ForecastTable {
  std::string profile_source;  ///< cached, measured, a file's name, or estimate
  int threads = 0;
  std::int64_t in_memory_bytes = 0;
  double in_memory_step_seconds = 0;  ///< predicted
  std::int64_t smallest_bytes = 0;    ///< the smallest budget to name
  /// Within the budget, where it was asked for; 0: none; kAnyBatch: all. Where the batch is in many slices it
  /// is told from how the need grows with them.
  std::int64_t largest_batch = 0;
  /// Where that is so many because there is no more space to swap: the space. 0: memory is the reason.
  std::int64_t swap_space_bytes = 0;
  std::vector<Forecast> budgets;  ///< the one that was named, or several up to what all in memory takes
  std::vector<std::string> explanation;
};

struct ForecastRequest {
  bool largest_batch = false;
  /// The name of a tensor or op; or "smallest": what the smallest budget is made of, which needs no budget.
  std::string explain;
  std::string plan_file;  ///< where to write the plan
};

/// Says what a session with the same options would do, and trains nothing. Takes little memory and no space
/// on the tier, and works from a profile that is there already, or else from an estimate (unless the options
/// want it measured). A budget that is too small is no error here. Where a step has several micro-batches,
/// `network` and `batch` are of one of them, and the largest batch is of all.
ForecastTable forecast(const NetworkOfBatch& network, std::int64_t batch, const Optimizer& optimizer,
                       const SessionOptions& options, const ForecastRequest& request = {});

/// The largest batch below `batch` that fits the budget; 0: none does.
std::int64_t largest_batch_below(const NetworkOfBatch& network, std::int64_t batch,
                                 const Optimizer& optimizer, const SessionOptions& options);

/// What one budget gives as a few lines, and several as a table: as `penstock plan` says it.
/// `tokens`: of a sample of text, for speeds in tokens; 0: samples are counted.
std::string forecast_text(const Forecast& forecast, const std::string& network, std::int64_t batch,
                          std::int64_t tokens = 0);
std::string forecast_text(const ForecastTable& table, std::int64_t batch, std::int64_t tokens = 0);

/// The version of the library: "0.1.0".
const char* version();

}  // namespace penstock
