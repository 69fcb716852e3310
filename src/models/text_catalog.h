#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/network.h"

namespace penstock::models {

/// What is known of a text model.
struct TextInfo {
  std::string name, description;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  ///< the most tokens of a sample
};

/// What a text model is made for. 0 stands for the model's own default.
struct TextSizes {
  std::int64_t batch = 1, sequence = 0, vocabulary = 0;
  bool dropout = true;  ///< false: leaves dropout layers out
};

/// The built-in text models.
std::vector<TextInfo> list_text_infos();

/// What is known of a text model: a built-in one, or the path of a config.json or of a folder that has one.
/// Nothing if `name` is neither. Throws UserError if the file is not to be used.
std::optional<TextInfo> find_text_info(const std::string& name);

inline bool is_text_model(const std::string& name) {
  return find_text_info(name).has_value();
}

/// `name` must be one that find_text_info() knows.
Network build_text_model(const std::string& name, const TextSizes& sizes);

/// The network for telling the next token of a window: see build_gpt2_next().
Network build_next_token_model(const std::string& name, std::int64_t vocabulary, std::int64_t window);

/// The config.json that belongs to a text model with that vocabulary.
std::string text_model_config(const std::string& name, std::int64_t vocabulary);

}  // namespace penstock::models
