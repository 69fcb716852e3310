#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// A place in the data: batch `batch` of epoch `epoch`, both from 0.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  bool operator==(const DataPosition&) const = default;
};

/// What becomes of the samples that do not fill the last batch of an epoch: left out (training), or filled up
/// with repetitions of the last sample, which the caller does not count (evaluation).
enum class LastBatch { drop, fill };

struct SamplerOptions {
  std::int64_t samples = 0;
  /// Samples per batch of this rank.
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last_batch = LastBatch::drop;
  /// Batch k of this rank is its slice of the batch k that a single rank with ranks * batch samples would
  /// take.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  /// Named in messages.
  std::string data_name = "the data";
};

/// Which samples make up which batch: a pure function of the options and the position, so a position is all
/// that a checkpoint has to keep. Immutable; any thread may call.
class Sampler {
 public:
  /// Throws UserError if the batch is not positive or, unless it is to be filled, larger than the data.
  explicit Sampler(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  std::int64_t batches_per_epoch() const;

  /// The options().batch indices of this rank's part of a batch.
  std::vector<std::int64_t> batch_indices(const DataPosition& position) const;

  /// How many of them are not repetitions; always options().batch where the last batch is dropped.
  std::int64_t valid_samples(std::int64_t batch) const;

  /// The position after this one.
  DataPosition next(DataPosition position) const;

 private:
  SamplerOptions options_;
};

}  // namespace penstock
