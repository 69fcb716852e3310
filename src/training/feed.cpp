#include "training/feed.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::training {
namespace {

/// No answer is right for samples that only fill up the last batch. `labels`: of `count` samples from `first`
/// on.
void hide_filling(const Sampler& sampler, DataPosition position, std::int64_t labels_per_sample,
                  std::int32_t* labels, std::int64_t first, std::int64_t count) {
  const std::int64_t valid =
      std::clamp<std::int64_t>(sampler.valid_samples(position.batch) - first, 0, count);
  std::fill(labels + valid * labels_per_sample, labels + count * labels_per_sample, -1);
}

class ImageFeed final : public Feed {
 public:
  ImageFeed(const Dataset& data, const Sampler& sampler, DataPosition start, std::int64_t batches,
            InputNames names, std::int64_t room)
      : names_(std::move(names)),
        labels_per_image_(data.geometry().label_values()),
        loader_(data, sampler, start, batches, room) {}

  Inputs inputs() override {
    return {{names_.images, InputArray([this](const InputPart& part) {
               loader_.next_images(static_cast<float*>(part.to), part.count);
             })},
            {names_.labels, InputArray([this](const InputPart& part) {
               auto* labels = static_cast<std::int32_t*>(part.to);
               const DataPosition here = loader_.position();
               loader_.next_labels(labels, part.count);
               hide_filling(loader_.sampler(), here, labels_per_image_, labels, part.first, part.count);
             })}};
  }
  DataPosition position() const override { return loader_.position(); }
  std::int64_t counted_labels() const override {
    return loader_.sampler().valid_samples(loader_.position().batch) * labels_per_image_;
  }
  std::int64_t skipped_count() const override { return loader_.skipped_count(); }
  std::vector<std::string> skipped() const override { return loader_.skipped(); }

 private:
  InputNames names_;
  std::int64_t labels_per_image_;
  Loader loader_;
};

/// Samples are a few kilobytes each and are read when the step asks for the first of its inputs.
class TokenFeed final : public Feed {
 public:
  TokenFeed(const TokenDataset& data, const Sampler& sampler, DataPosition start)
      : sequence_(data.sequence()), batches_(data, sampler, start), position_(start) {
    const auto count = static_cast<std::size_t>(sampler.options().batch * sequence_);
    tokens_.resize(count);
    labels_.resize(count);
  }

  Inputs inputs() override {
    return {{"tokens", InputArray([this](const InputPart& all) { take(tokens_, tokens_out_, all.to); })},
            {"labels", InputArray([this](const InputPart& all) { take(labels_, labels_out_, all.to); })}};
  }
  DataPosition position() const override { return position_; }
  std::int64_t counted_labels() const override {
    return batches_.sampler().valid_samples(position_.batch) * sequence_;
  }

 private:
  void take(const std::vector<std::int32_t>& values, bool& out, void* to) {
    require(!out, "an input of this batch is out already");
    if (!tokens_out_ && !labels_out_) {
      batches_.next(tokens_.data(), labels_.data());
      hide_filling(batches_.sampler(), position_, sequence_, labels_.data(), 0,
                   batches_.sampler().options().batch);
    }
    std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(to));
    out = true;
    if (!tokens_out_ || !labels_out_) return;
    tokens_out_ = labels_out_ = false;
    position_ = batches_.position();
  }

  std::int64_t sequence_;
  TokenBatches batches_;
  DataPosition position_;
  std::vector<std::int32_t> tokens_, labels_;
  bool tokens_out_ = false, labels_out_ = false;  ///< of the batch at position()
};

}  // namespace

std::unique_ptr<Feed> feed_images(const Dataset& data, const Sampler& sampler, DataPosition start,
                                  std::int64_t batches, const InputNames& names, std::int64_t room) {
  return std::make_unique<ImageFeed>(data, sampler, start, batches, names, room);
}

std::unique_ptr<Feed> feed_tokens(const TokenDataset& data, const Sampler& sampler, DataPosition start) {
  return std::make_unique<TokenFeed>(data, sampler, start);
}

std::int64_t token_feed_bytes(std::int64_t batch, std::int64_t sequence) {
  return 2 * batch * sequence * static_cast<std::int64_t>(sizeof(std::int32_t));
}

}  // namespace penstock::training
