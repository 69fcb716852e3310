#pragma once

#include <vector>

namespace penstock {

/// The middle value; of an even number the mean of the two in the middle. At least one value.
double median(std::vector<double> values);
/// The middle value; of an even number the larger of the two in the middle, so that it is one that occurred.
/// 0 of none.
double upper_median(std::vector<double> values);

}  // namespace penstock
