#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/permutation.h"

namespace penstock {

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)) {
  require(options_.ranks >= 1 && options_.rank >= 0 && options_.rank < options_.ranks, "rank of a sampler");
  require(options_.samples >= 1, "a sampler needs samples");
  if (options_.batch < 1)
    throw UserError(fmt::format("batch {} is too small: it must be at least 1", options_.batch));
  if (options_.last_batch == LastBatch::drop && options_.batch > options_.samples / options_.ranks) {
    throw UserError(fmt::format("batch {}{} is larger than the data: {} has {} samples", options_.batch,
                                options_.ranks == 1 ? "" : fmt::format(" on {} ranks", options_.ranks),
                                options_.data_name, options_.samples));
  }
}

std::int64_t Sampler::batches_per_epoch() const {
  const std::int64_t whole_batch = options_.batch * options_.ranks;
  const std::int64_t full = options_.samples / whole_batch;
  return options_.last_batch == LastBatch::fill && full * whole_batch < options_.samples ? full + 1 : full;
}

std::int64_t Sampler::valid_samples(std::int64_t batch) const {
  const std::int64_t first = (batch * options_.ranks + options_.rank) * options_.batch;
  return std::clamp(options_.samples - first, std::int64_t{0}, options_.batch);
}

std::vector<std::int64_t> Sampler::batch_indices(const DataPosition& position) const {
  require(position.epoch >= 0 && position.batch >= 0 && position.batch < batches_per_epoch(),
          "position in the data");
  const Permutation permutation(options_.seed, position.epoch, options_.samples);
  const std::int64_t first = (position.batch * options_.ranks + options_.rank) * options_.batch;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(options_.batch));
  for (std::int64_t i = 0; i < options_.batch; ++i) {
    const std::int64_t place = std::min(first + i, options_.samples - 1);
    indices[static_cast<std::size_t>(i)] = options_.shuffle ? permutation(place) : place;
  }
  return indices;
}

DataPosition Sampler::next(DataPosition position) const {
  if (++position.batch == batches_per_epoch()) position = {position.epoch + 1, 0};
  return position;
}

}  // namespace penstock
