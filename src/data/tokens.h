#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "data/sampler.h"

namespace penstock {

/// A file of tokens in samples of `sequence`, read by position. Sample i has the tokens from i * sequence on,
/// and for each the one behind it as its label, so the last token of the file is a label only. Immutable once
/// open: any thread may read.
class TokenDataset {
 public:
  /// Where a part of a file lies and what it is made of.
  struct Part {
    std::shared_ptr<const InputFile> file;  ///< null: tokens are drawn by `seed` from the vocabulary
    std::int64_t offset_bytes = 0;          ///< of the part's first token
    std::int64_t tokens = 0;
    std::int64_t token_bytes = 1;  ///< 1, 2 or 4, the lowest first
    std::int64_t first_token = 0;  ///< place of the part's first token in the file, for messages
    std::uint64_t seed = 0;
  };

  /// Throws UserError if there is not one sample. A `vocabulary` of 0 means that any token will do.
  TokenDataset(std::string name, Part part, std::int64_t sequence, std::int64_t vocabulary);

  /// For messages, say "tokens:book.bin (train)".
  const std::string& name() const { return name_; }
  std::int64_t sequence() const { return sequence_; }
  std::int64_t size() const { return (part_.tokens - 1) / sequence_; }

  /// Writes sequence() tokens and as many labels. Throws UserError for a token outside the vocabulary.
  void read(std::int64_t index, std::int32_t* tokens, std::int32_t* labels) const;

 private:
  /// sequence() tokens from `first` on.
  void read_from(std::int64_t first, std::int32_t* to) const;

  std::string name_;
  Part part_;
  std::int64_t sequence_;
  std::int64_t vocabulary_;
};

struct TokenRequest {
  /// tokens:FILE[,FILE] (uint16, or uint32 where the vocabulary has more than 65,536 tokens; .npy files say
  /// it themselves) or text:FILE[,FILE] (a token a byte). The second file is for validation; without one it
  /// is the last tenth of the first. Or synthetic: random tokens.
  std::string source;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  ///< of the network; 0: any
  std::uint64_t seed = 0;       ///< of random tokens
};

struct TokenSplits {
  std::unique_ptr<TokenDataset> train;
  std::unique_ptr<TokenDataset> validation;
};

/// Whether a data source is one of tokens alone.
bool is_token_source(const std::string& source);

/// Throws UserError with one line that names the file and what is wrong with it.
TokenSplits open_tokens(const TokenRequest& request);

/// Batches of a data set in a sampler's order. Samples are a few kilobytes each and are read when they are
/// asked for. Does not own the data set. One thread at a time may call.
class TokenBatches {
 public:
  /// Throws UserError if the data has no such position.
  TokenBatches(const TokenDataset& dataset, Sampler sampler, DataPosition start = {});

  /// Writes the batch at position(), tokens and labels [batch, sequence], and moves on.
  void next(std::int32_t* tokens, std::int32_t* labels);

  /// Where the batch is that next() will give: what a checkpoint has to keep.
  DataPosition position() const { return position_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  const TokenDataset& dataset_;
  Sampler sampler_;
  DataPosition position_;
};

}  // namespace penstock
