#pragma once

// Penstock's public interface: describe a network (or name one), say how much memory there is, train.
// Errors are exceptions: penstock::UserError for what the caller can mend, penstock::RunError for I/O
// failures.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// A tensor of a network under construction.
using Value = std::int32_t;

struct ConvLayer {
  std::int64_t channels = 0;  ///< output channels
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

struct PoolLayer {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// Hands out the layers of a network; only valid inside the function given to Network.
/// Named layers own parameters, called as PyTorch would: conv("stem", ...) makes "stem.weight" and
/// "stem.bias".
class Layers {
 public:
  struct Impl;
  explicit Layers(Impl* impl) : impl_(impl) {}

  Value conv(const std::string& name, Value x, const ConvLayer& layer);
  Value conv_transpose(const std::string& name, Value x, const ConvLayer& layer);
  Value linear(const std::string& name, Value x, std::int64_t features, bool bias = true);
  Value batch_norm(const std::string& name, Value x);
  Value layer_norm(const std::string& name, Value x);
  Value relu(Value x);
  Value leaky_relu(Value x, float slope = 0.01F);
  Value gelu(Value x);
  Value sigmoid(Value x);
  Value tanh(Value x);
  Value max_pool(Value x, const PoolLayer& layer);
  Value avg_pool(Value x, const PoolLayer& layer);
  Value global_avg_pool(Value x);
  Value dropout(Value x, float probability);
  Value add(Value a, Value b);
  Value multiply(Value a, Value b);
  Value concat(const std::vector<Value>& values);
  Value upsample(Value x, std::int64_t factor, bool bilinear = false);
  Value flatten(Value x);

  std::vector<std::int64_t> shape(Value x) const;
  std::int64_t classes() const;

 private:
  Impl* impl_;
};

/// A network: one of the built-in models by name, or a function from images [N, C, H, W] to logits [N,
/// classes].
struct Network {
  using Define = std::function<Value(Layers& layers, Value images)>;

  std::string name;
  std::int64_t channels = 0, image_size = 0, classes = 0;  ///< 0: the built-in model's own
  Define define;                                           ///< empty: a built-in model

  static Network model(std::string name);
  static Network custom(std::string name, std::int64_t channels, std::int64_t image_size,
                        std::int64_t classes, Define define);
};

namespace dist {
class Communicator;
}

/// The processes that train together, as one of them sees it. One thread uses it.
class Ranks {
 public:
  explicit Ranks(std::unique_ptr<dist::Communicator> communicator);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  dist::Communicator& communicator() { return *communicator_; }

  /// Each rank does its part; if that fails on any, all throw the same: what is wrong, and on which rank
  /// unless it is on all. There must be no talk between ranks in a part.
  void together(const std::function<void()>& part);
  /// Does what the ranks do side by side. What fails on this rank alone is told to `on_failure` (message,
  /// exit code), which should end all ranks: they wait for this one.
  void side_by_side(const std::function<void()>& part,
                    const std::function<void(const std::string&, int)>& on_failure);
  /// Throws RunError on all ranks alike; to be called by all.
  [[noreturn]] void fail_together(const std::string& message);
  /// Ends all ranks at once, this process included.
  [[noreturn]] void abort(int exit_code);

 private:
  std::unique_ptr<dist::Communicator> communicator_;
  bool agreed_ = false;  ///< all ranks throw the same just now
};

/// Joins the processes that mpirun started; without it, one rank alone. Call it once in a process.
std::shared_ptr<Ranks> join_ranks();
/// Which of mpirun's processes this is, known before they are joined; 0 without mpirun.
int launched_rank();

/// What a training loop tells while it runs.
struct Progress {
  std::int64_t step = 0;   ///< steps done
  std::int64_t steps = 0;  ///< steps in all
  std::int64_t epoch = 0;
  double loss = 0;
  double step_seconds = 0;
  double images_per_second = 0;
  double learning_rate = 0;
  double seconds_left = 0;
  double compute_seconds = 0;    ///< of the last step: in kernels, repetitions included
  double recompute_seconds = 0;  ///< of these, in repetitions
  double stall_seconds = 0;      ///< of the last step: waiting for the tier
  double stall_share = 0;        ///< the same as a share of the step
  std::int64_t swapped_out_bytes = 0, swapped_in_bytes = 0;  ///< of the last step
  std::int64_t pool_peak_bytes = 0;                          ///< of the last step
  std::int64_t memory_bytes = 0;                             ///< the process's resident memory now
  std::int64_t budget_bytes = 0;
};

/// A part of a run that is over: build, plan, fill, train, evaluate.
struct RunPhase {
  std::string name;
  double seconds = 0;
  std::string detail;  ///< its numbers, in one line
};

struct Options {
  std::string data = "synthetic";
  std::int64_t batch = 32;  ///< of each rank
  std::int64_t steps = 0;   ///< either steps
  std::int64_t epochs = 0;  ///< or epochs
  bool shuffle = true;
  bool evaluate = false;  ///< on the test split, at the end

  std::string optimizer = "sgd";  ///< sgd, adam, adamw
  double learning_rate = 0;       ///< 0: the optimizer's default (sgd 0.1, adam and adamw 0.001)
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  std::string schedule = "constant";  ///< constant, step:EVERY[,FACTOR], cosine; ",warmup:N" may follow
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: as many as there are cores

  std::string init_file;  ///< safetensors to start from
  std::string save_file;  ///< safetensors to write at the end
  std::string checkpoint_dir;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only at the end
  std::string resume_dir;

  std::string memory;  ///< "1GiB", "50%"; empty: what is free, less a margin
  std::string policy;  ///< keep, lms, superneurons, pooch, window, auto; empty: keep where it fits, else auto
  std::string profile = "cached";  ///< measured times to plan by: cached, fresh, or a file
  std::string plan_file;           ///< a plan that plan_training() wrote; empty: train() plans itself
  std::string kernels = "fixed";   ///< fixed; dynamic: the fastest that fits, and bits depend on the budget
  std::string tier = "disk";       ///< disk, disk-threads, ram
  std::string swap_dir;
  std::string tier_bandwidth;      ///< "200MB/s"; empty: unthrottled
  std::string verify = "sampled";  ///< sampled, full, off
  std::string pool = "auto";       ///< auto, virtual, packed
  std::string window;              ///< bytes looked ahead by `window`; empty: 1.5 times the pool
  std::int64_t lms_threshold = 0, lms_ahead = 0, lms_groupby = 0;  ///< 0: tuned

  std::shared_ptr<Ranks> ranks;  ///< join_ranks(); null: alone
  bool shard_optimizer = false;  ///< each rank keeps a part of the optimizer's state
  std::string bucket;            ///< gradients travel together up to this; empty: 8 MiB
  std::string in_flight;  ///< gradients on their way at a time; empty: 32 MiB under a budget, else 1 GiB
  std::function<void(const std::string&, int)> on_rank_failure;  ///< see Ranks::side_by_side()
  std::string trace_file;   ///< the first steps as a trace for Perfetto and chrome://tracing
  std::string report_file;  ///< a page about the run, in HTML
  std::string command;      ///< what the report says the run was started by

  std::function<void(const Progress&)> on_step;
  bool settle_steps = false;  ///< no transfer is under way while on_step runs: it may stop the process
  std::function<void(const RunPhase&)> on_phase;
  std::function<void(const std::string&)>
      on_note;  ///< one line worth telling: what memory was taken, a warning
};

struct Result {
  std::string model;
  std::int64_t batch = 0, steps = 0, epochs = 0;
  int threads = 0;
  std::uint64_t seed = 0;
  std::vector<double> loss;          ///< one a step
  std::vector<double> step_seconds;  ///< one a step
  double images_per_second = 0;      ///< median of the steps after the first
  double startup_seconds = 0;        ///< before the first step
  double accuracy = -1;              ///< on the test split; negative: not evaluated
  std::int64_t test_images = 0;
  std::int64_t skipped_images = 0;  ///< that did not decode
  std::int64_t peak_rss_bytes = 0;
  std::string weights_sha256;

  std::string policy, tier, pool;
  std::int64_t budget_bytes = 0, pool_bytes = 0, overhead_bytes = 0, planned_peak_bytes = 0,
               pool_peak_bytes = 0;
  std::int64_t in_memory_bytes = 0;  ///< what training without a budget would have taken
  std::int64_t fragmentation_bytes = 0;
  std::map<std::string, std::int64_t> peak_by_tag;
  std::int64_t swapped_out_bytes = 0, swapped_in_bytes = 0;  ///< per step
  double stall_seconds = 0;                                  ///< per step, median
  double recompute_seconds = 0;                              ///< per step, median
  double compute_seconds = 0;                                ///< per step, median; recomputation included
  double predicted_step_seconds = 0;                         ///< of the last plan; 0: nothing was predicted
  double bound_seconds = 0;                                  ///< no plan is faster; 0: not known
  std::string profile_source;                                ///< measured, cached, a file; empty: none
  std::int64_t replans = 0;                                  ///< how often the step was planned again
  double plan_seconds = 0;
  std::int64_t swap_file_bytes = 0;

  int ranks = 1;
  std::int64_t effective_batch = 0;               ///< of all ranks
  std::vector<std::int64_t> rank_peak_rss_bytes;  ///< by rank
  std::int64_t network_bytes = 0;                 ///< sent by this rank per step
  double reduce_seconds = 0;                      ///< per step: gradients were on their way
  double reduce_wait_seconds = 0;                 ///< per step: of these, compute stood still
  double network_bandwidth = 0;                   ///< measured at the start, bytes per second each way
  double network_latency_seconds = 0;
};

/// What training within one budget would be like. Times are predicted.
struct PlannedBudget {
  std::int64_t budget_bytes = 0;
  bool feasible = false;  ///< otherwise nothing below is known
  std::string policy;
  std::int64_t overhead_bytes = 0, planned_peak_bytes = 0;  ///< beside the pool, and of the pool
  double predicted_step_seconds = 0, compute_seconds = 0, recompute_seconds = 0, stall_seconds = 0;
  double images_per_second = 0;
  double in_memory_share = 0;                                ///< of the speed in memory
  double bound_seconds = 0;                                  ///< no plan is faster; 0: not known
  std::int64_t swapped_out_bytes = 0, swapped_in_bytes = 0;  ///< per step
  std::int64_t swap_file_bytes = 0;
  double written_bytes_per_day = 0;
};

/// What plan_training() found out.
struct PlanResult {
  std::string model;
  std::int64_t batch = 0;
  int threads = 0;
  std::string profile_source;          ///< cached, measured, a file's name, or estimate
  std::int64_t in_memory_bytes = 0;    ///< the whole process without a budget
  double in_memory_step_seconds = 0;   ///< predicted
  std::int64_t smallest_bytes = 0;     ///< the smallest budget to name
  std::int64_t largest_batch = 0;      ///< within the budget, where it was asked for; 0: none
  std::vector<PlannedBudget> budgets;  ///< the one that was named, or several up to what all in memory takes
  std::vector<std::string> explanation;  ///< of a tensor or op, where it was asked for
};

/// What plan_training() is to find out besides.
struct PlanRequest {
  bool largest_batch = false;
  std::string explain;   ///< the name of a tensor or op
  std::string out_file;  ///< the plan as JSON, for Options::plan_file
};

/// Says what train() would do with the same options, and trains nothing. Takes little memory and no space on
/// the tier, and works from a profile that is there already, or else from an estimate (unless options.profile
/// is "fresh"). A budget that is too small is no error here.
PlanResult plan_training(const Network& network, const Options& options, const PlanRequest& request = {});

/// Trains and returns what happened.
Result train(const Network& network, const Options& options);

/// Accuracy of `options.init_file` (or of a checkpoint) on the data's test split.
Result evaluate(const Network& network, const Options& options);

/// The version of the library: "0.1.0".
const char* version();

}  // namespace penstock
