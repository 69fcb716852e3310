#include "data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace penstock {
namespace {

/// Apart from the streams of synthetic images.
constexpr std::uint32_t kDrawToken = 0x746F6B65;

static_assert(std::endian::native == std::endian::little, "token files have the lowest byte first");

/// Widens `count` tokens of `token_bytes` that lie at the end of `values`, in place.
void widen(std::int32_t* values, std::int64_t count, std::int64_t token_bytes) {
  const auto* from = reinterpret_cast<const char*>(values) + count * (4 - token_bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t token = 0;
    std::memcpy(&token, from + i * token_bytes, static_cast<std::size_t>(token_bytes));
    // A token beyond s32 is outside every vocabulary: kept at the largest value, so that it is refused.
    values[i] = static_cast<std::int32_t>(std::min(token, std::uint32_t{0x7FFFFFFF}));
  }
}

}  // namespace

TokenDataset::TokenDataset(std::string name, Part part, std::int64_t sequence, std::int64_t vocabulary)
    : name_(std::move(name)), part_(std::move(part)), sequence_(sequence), vocabulary_(vocabulary) {
  if (sequence_ < 1)
    throw UserError(fmt::format("a sequence of {} tokens is too short: take 1 or more", sequence_));
  if (part_.tokens <= sequence_) {
    throw UserError(fmt::format("{} has {} tokens, but a sample of {} needs {}: take a shorter sequence",
                                name_, part_.tokens, sequence_, sequence_ + 1));
  }
}

void TokenDataset::read(std::int64_t index, std::int32_t* tokens, std::int32_t* labels) const {
  require(index >= 0 && index < size(), "a sample of a token data set");
  const std::int64_t first = index * sequence_;
  read_from(first, tokens);
  read_from(first + 1, labels);
  if (vocabulary_ == 0) return;
  for (const std::int32_t* values : {std::as_const(tokens), std::as_const(labels)}) {
    const std::int32_t* wrong =
        std::find_if(values, values + sequence_, [&](std::int32_t token) { return token >= vocabulary_; });
    if (wrong == values + sequence_) continue;
    const std::int64_t place = part_.first_token + first + (wrong - values) + (values == labels ? 1 : 0);
    throw UserError(
        fmt::format("{} has token {} at {}, but the network's vocabulary has {}: take the tokenizer "
                    "that the network was made for",
                    name_, *wrong, place, vocabulary_));
  }
}

void TokenDataset::read_from(std::int64_t first, std::int32_t* to) const {
  if (part_.file == nullptr) {
    const CounterRandom random(part_.seed, RandomPurpose::synthetic, 0, kDrawToken);
    for (std::int64_t i = 0; i < sequence_; ++i) {
      const auto place = static_cast<std::uint64_t>(part_.first_token + first + i);
      to[i] = static_cast<std::int32_t>(random.bits(place) % static_cast<std::uint32_t>(vocabulary_));
    }
    return;
  }
  // Read to the end of the tokens' memory and widened from there, so that no other memory is needed.
  const std::int64_t size_bytes = sequence_ * part_.token_bytes;
  char* end = reinterpret_cast<char*>(to + sequence_);
  part_.file->read_at(part_.offset_bytes + first * part_.token_bytes, end - size_bytes, size_bytes);
  widen(to, sequence_, part_.token_bytes);
}

TokenBatches::TokenBatches(const TokenDataset& dataset, Sampler sampler, DataPosition start)
    : dataset_(dataset), sampler_(std::move(sampler)), position_(start) {
  if (start.epoch < 0 || start.batch < 0 || start.batch >= sampler_.batches_per_epoch()) {
    throw UserError(fmt::format("{} has no batch {}: an epoch has {}", dataset.name(), start.batch,
                                sampler_.batches_per_epoch()));
  }
}

void TokenBatches::next(std::int32_t* tokens, std::int32_t* labels) {
  for (const std::int64_t index : sampler_.batch_indices(position_)) {
    dataset_.read(index, tokens, labels);
    tokens += dataset_.sequence();
    labels += dataset_.sequence();
  }
  position_ = sampler_.next(position_);
}

}  // namespace penstock
