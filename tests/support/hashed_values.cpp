#include "support/hashed_values.h"

#include <cmath>

namespace penstock::testing {

std::vector<std::uint32_t> hashed(const std::string& name, std::int64_t count) {
  std::uint32_t start = 2166136261U;
  for (const char c : name) start = (start ^ static_cast<unsigned char>(c)) * 16777619U;
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t x = start + static_cast<std::uint32_t>(i) * 0x9E3779B9U;
    x = (x ^ (x >> 16)) * 0x85EBCA6BU;
    x = (x ^ (x >> 13)) * 0xC2B2AE35U;
    values[i] = x ^ (x >> 16);
  }
  return values;
}

std::vector<float> hashed_uniform(const std::string& name, std::int64_t count) {
  std::vector<float> values;
  for (const std::uint32_t x : hashed(name, count))
    values.push_back(static_cast<float>(x / 2147483648.0 - 1));
  return values;
}

std::vector<float> hashed_state(const ir::Tensor& tensor, float norm_factor, float norm_term) {
  const std::int64_t count = tensor.shape.elements();
  if (tensor.role != ir::Role::parameter) {
    return std::vector<float>(static_cast<std::size_t>(count), tensor.init.value);
  }
  std::vector<float> values = hashed_uniform(tensor.name, count);
  const bool is_vector = tensor.shape.rank() == 1;
  const float center = tensor.name.text().ends_with(".weight") ? norm_factor : norm_term;
  const auto scale = static_cast<float>(std::sqrt(6 / static_cast<double>(count / tensor.shape[0])));
  for (float& value : values) value = is_vector ? value * 0.1F + center : value * scale;
  return values;
}

}  // namespace penstock::testing
