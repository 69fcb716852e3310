#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/shape.h"

namespace penstock {

/// One value per spatial axis of `x`: a single given value stands for all. UserError that names the layer
/// otherwise, or if a value is below `smallest`.
std::vector<std::int64_t> spatial(const std::string& layer, const char* what, const ir::Shape& x,
                                  const std::vector<std::int64_t>& given, std::int64_t smallest);

/// A layer's input is smaller than what it slides over it.
class TooSmallError : public UserError {
 public:
  using UserError::UserError;
};

/// A kernel that slides over its input, one entry per spatial axis.
struct Sliding {
  std::string layer;
  const char* kind = "";  ///< "convolution", "max pool": for the message
  std::vector<std::int64_t> kernel, stride, padding_begin, padding_end, dilation;
};

/// Throws TooSmallError if the kernel finds no place in `x`.
void check_fits(const Sliding& sliding, const ir::Shape& x);

/// "3x3" or "56x56x56".
std::string extents_text(const std::vector<std::int64_t>& extents);

/// The spatial extents of an [N, C, ...] shape.
std::vector<std::int64_t> extents_of(const ir::Shape& shape);

}  // namespace penstock
