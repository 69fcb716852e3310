#pragma once

#include <map>
#include <string>

#include "penstock/ranks.h"

namespace penstock::training {

/// All ranks call it with what they start from, by names of their own choice. Throws the same UserError on
/// all if any differs from rank 0: such ranks would drift apart, or wait for each other for ever.
void require_same_start(Ranks& ranks, const std::map<std::string, std::string>& facts);

}  // namespace penstock::training
