#pragma once

// What a session is told: memory, optimizer, ranks. Plain data with defaults; programs set what they care
// about.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace penstock {

/// Who decides what is kept in memory, swapped and computed again.
enum class Policy : std::uint8_t { keep, lms, superneurons, pooch, window, automatic };

/// How memory is handed out: at fixed offsets of one arena, or by moving pages between address ranges.
enum class PoolKind : std::uint8_t { packed, paged };

/// Where tensors are swapped to: a file by io_uring, a file by threads, or memory outside the budget.
enum class TierKind : std::uint8_t { disk, disk_threads, ram };

/// How much of what comes back from the tier is checked: nothing, 32 bytes of every 4 KiB, every byte.
enum class VerifyMode : std::uint8_t { off, sampled, full };

/// What a memory budget bounds: all that the process takes, or what the session adds to it.
enum class BudgetScope : std::uint8_t { process, session };

/// Where the measured times come from that plans are made by: measured once for a network and a machine and
/// kept in the user's cache folder, measured anew, or a file.
enum class ProfileSource : std::uint8_t { cached, fresh, file };

/// Knobs of Policy::lms, in ops of the step; 0: tuned for the budget.
struct LmsKnobs {
  std::int64_t threshold = 0;  ///< an activation is swapped out if two uses are further apart than this
  std::int64_t ahead = 0;      ///< its copy-in starts so many ops before the use
  std::int64_t groupby = 0;    ///< later uses no further apart than this share a copy-in
};

struct MemoryOptions {
  std::int64_t budget_bytes = 0;  ///< 0: what is free, less a margin
  BudgetScope scope = BudgetScope::process;
  std::optional<Policy> policy;  ///< none: keep where all fits, else automatic
  std::optional<PoolKind> pool;  ///< none: whichever has the faster plan
  /// Each op takes the fastest kernel whose workspace fits; the last bits of results then depend on the
  /// budget.
  bool dynamic_kernels = false;
  LmsKnobs lms;
  /// The step runs on slices of the batch of so many samples, so that a budget need not hold a whole batch of
  /// anything. The last bits of results depend on it, but not on the budget. 0: the batch is not cut. None:
  /// as suits the network, its batch and its images (slice_samples()).
  std::optional<std::int64_t> slice_samples;
  /// Each image, or volume, is cut into so many bands of rows as well, so that a budget need not hold a whole
  /// one. 1: images are not cut. None: where one image is too wide by itself, as suits it.
  std::optional<std::int64_t> bands;
  /// What costs little, such as a batch norm with a ReLU, is made again in backward under every policy. Off:
  /// as the policies were published.
  bool repeat_cheap = true;
  std::int64_t window_bytes = 0;  ///< how far Policy::window looks ahead; 0: 1.5 times the pool
  TierKind tier = TierKind::disk;
  std::string swap_dir;  ///< empty: a temporary folder that is on a disk
  /// What the swap file may take at most; what does not fit there is kept or computed again. None: what is
  /// free there, less a margin.
  std::optional<std::int64_t> swap_space_bytes;
  std::int64_t tier_bytes_per_second = 0;  ///< throttles the tier, each way; 0: as fast as it goes
  VerifyMode verify = VerifyMode::sampled;
  ProfileSource profile = ProfileSource::cached;
  std::string profile_file;  ///< of ProfileSource::file
  std::string plan_file;     ///< a plan that Session::save_plan() wrote; empty: the session plans itself
};

/// What Adam's moments are kept as.
enum class MomentType : std::uint8_t { f32, bf16 };

enum class OptimizerKind : std::uint8_t { sgd, adam, adamw };

/// PyTorch's rules and defaults. The learning rate may change from step to step
/// (Session::set_learning_rate()).
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0;  ///< 0: sgd 0.1, adam and adamw 0.001
  float momentum = 0;        ///< sgd
  bool nesterov = false;     ///< sgd
  float weight_decay = 0;    ///< added to the gradient; adamw: taken off the parameter
  /// Only parameters of two axes and more decay: weights of layers and embeddings, but neither biases nor
  /// what norms scale and shift by.
  bool decay_matrices_only = false;
  /// All gradients are scaled down by one factor where their norm, taken over all parameters, is above this.
  /// 0: they are not.
  float clip_norm = 0;
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< adam, adamw
  /// adam, adamw. bf16 halves the moments' memory and traffic; they are rounded up or down by chance, so that
  /// they stay right on average.
  MomentType moments = MomentType::f32;

  static Optimizer sgd(double learning_rate = 0, float momentum = 0);
  static Optimizer adam(double learning_rate = 0);
  static Optimizer adamw(double learning_rate = 0, float weight_decay = 0.01F);
};

class Ranks;

/// Training in several processes.
struct RankOptions {
  std::shared_ptr<Ranks> ranks;   ///< join_ranks(); null: alone
  bool shard_optimizer = false;   ///< each rank keeps a part of the optimizer's state
  std::int64_t bucket_bytes = 0;  ///< gradients travel together up to this; 0: 8 MiB
  std::int64_t in_flight_bytes =
      0;  ///< gradients on their way at a time; 0: 32 MiB under a budget, else 1 GiB
};

/// A part of a session's life that is over: build, profile, plan, …
struct Phase {
  std::string name;
  double seconds = 0;
  std::string detail;  ///< its numbers, in one line
};

struct SessionOptions {
  MemoryOptions memory;
  RankOptions ranks;
  /// Micro-batches a step. The network is made for one of them, and a step takes as many, one behind the
  /// other along the first axis of each input; its loss is their mean. Gradients are added up, and parameters
  /// change once.
  std::int64_t accumulate = 1;
  std::uint64_t seed = 0;
  int threads = 0;         ///< compute threads; 0: as many as OpenMP would use
  bool training = true;    ///< false: run() only, and no optimizer state
  bool evaluation = true;  ///< room and a plan for run()
  bool record = false;     ///< the first steps are kept for write_trace() and write_report()
  /// Memory that the program itself will take beside the session and that the budget is to count, by name.
  std::map<std::string, std::int64_t> reserved_bytes;
  std::function<void(const Phase&)> on_phase;
  std::function<void(const std::string&)>
      on_note;  ///< one line worth telling: what memory was taken, a warning
};

}  // namespace penstock
