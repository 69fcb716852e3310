#pragma once

#include "models/text_models.h"

namespace penstock::models {

/// The options with the sequence filled in. Throws UserError if one is out of range.
TextOptions checked_options(const std::string& model, TextOptions options, std::int64_t positions);

}  // namespace penstock::models
