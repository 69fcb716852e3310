#include "models/text_options.h"

#include <fmt/format.h>

#include "base/error.h"

namespace penstock::models {

TextOptions checked_options(const std::string& model, TextOptions options, std::int64_t positions) {
  if (options.sequence == 0) options.sequence = positions;
  if (options.batch < 1)
    throw UserError(fmt::format("batch {} is too small: it must be at least 1", options.batch));
  if (options.sequence < 1 || options.sequence > positions) {
    throw UserError(fmt::format("{} takes sequences of 1 to {} tokens, not {}: it has no more positions",
                                model, positions, options.sequence));
  }
  return options;
}

}  // namespace penstock::models
