#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/tokens.h"
#include "penstock/session.h"

namespace penstock::training {

/// Gives a network the batches of a data set, one for each step, in a sampler's order. One thread.
class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// What a step takes; the feed must outlive it. The same inputs serve every step.
  virtual Inputs inputs() = 0;
  /// Where the batch is that the next step will take.
  virtual DataPosition position() const = 0;
  /// Labels of the batch at position() that count: those of samples which only fill up the last batch do not.
  virtual std::int64_t counted_labels() const = 0;

  /// Samples that could not be used, and a line for each of the first.
  virtual std::int64_t skipped_count() const { return 0; }
  virtual std::vector<std::string> skipped() const { return {}; }
};

/// What a network calls its inputs.
struct InputNames {
  std::string images = "images", labels = "labels";
};

/// `batches`: how many steps there will be. `room`: samples that are read ahead (Loader); 0: a batch.
std::unique_ptr<Feed> feed_images(const Dataset& data, const Sampler& sampler, DataPosition start,
                                  std::int64_t batches, const InputNames& names, std::int64_t room = 0);
/// Inputs `tokens` and `labels`.
std::unique_ptr<Feed> feed_tokens(const TokenDataset& data, const Sampler& sampler, DataPosition start);

/// What a feed of tokens takes of memory.
std::int64_t token_feed_bytes(std::int64_t batch, std::int64_t sequence);

}  // namespace penstock::training
