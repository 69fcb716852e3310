#pragma once

// Text, token by token, from a trained network.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/options.h"

namespace penstock {

struct GenerateOptions {
  std::string init_file;   ///< safetensors, or a folder of the hub
  std::string resume_dir;  ///< or a checkpoint
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 100;    ///< how many to add to the prompt
  double temperature = 1;       ///< what logits are divided by; 0: always the likeliest token
  std::int64_t top_k = 0;       ///< only the likeliest so many are drawn from; 0: all
  std::int64_t vocabulary = 0;  ///< 0: the model's own
  SessionOptions session;       ///< its seed is that of the draws; training and evaluation are set
  std::function<void(std::int32_t)> on_token;  ///< told each new token as it is drawn
};

struct GenerateResult {
  std::vector<std::int32_t> tokens;  ///< the new ones
  double tokens_per_second = 0;      ///< of all tokens that were run, the prompt's too
  std::int64_t peak_rss_bytes = 0;
};

/// Continues a prompt with a text model: a built-in one or a config.json. Keys and values of the tokens so
/// far are kept, so a token costs one pass over the weights; the budget holds for all of it. Throws UserError
/// if the prompt is empty, has a token outside the vocabulary, or is too long for the model's positions.
GenerateResult generate(const std::string& model, const GenerateOptions& options);

/// Draws a token: a function of the logits, the options and `place` alone. Of equal logits the first is the
/// likelier.
std::int32_t draw_token(const std::vector<float>& logits, const GenerateOptions& options, std::int64_t place);

}  // namespace penstock
