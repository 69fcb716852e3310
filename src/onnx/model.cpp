#include "onnx/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace penstock::onnx {

bool is_floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::f64 ||
         type == ElementType::bf16;
}

std::int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::u8:
    case ElementType::s8:
    case ElementType::boolean:
      return 1;
    case ElementType::u16:
    case ElementType::s16:
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::f32:
    case ElementType::s32:
    case ElementType::u32:
      return 4;
    case ElementType::f64:
    case ElementType::s64:
    case ElementType::u64:
      return 8;
    default:
      return 0;
  }
}

std::string type_name(ElementType type) {
  static const char* const names[] = {"undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
                                      "int32",     "int64",   "string",    "bool",       "float16", "float64",
                                      "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(names) ? names[index] : fmt::format("type {}", static_cast<int>(type));
}

const Attribute* Node::find(const std::string& attribute) const {
  for (const Attribute& known : attributes) {
    if (known.name == attribute) return &known;
  }
  return nullptr;
}

std::int64_t Model::opset() const {
  const auto found = opsets.find("");
  return found == opsets.end() ? 0 : found->second;
}

namespace {

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23U) | (fraction << 13U));
}

/// Rounds to the nearest, ties to even.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  const float size = std::fabs(value);
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7C00U);
  // The last place of a half of this size; nearbyint() rounds ties to even.
  const int exponent = std::max(size == 0 ? -14 : std::ilogb(size), -14);
  const float units = std::nearbyint(std::ldexp(size, 10 - exponent));
  const auto magnitude =
      static_cast<std::uint32_t>((exponent + 14) << 10) + static_cast<std::uint32_t>(units);
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace

float decode_float(ElementType type, const std::uint8_t* from) {
  switch (type) {
    case ElementType::f16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, 2);
      return from_half(bits);
    }
    case ElementType::bf16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, 2);
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
    }
    case ElementType::f64: {
      double value = 0;
      std::memcpy(&value, from, 8);
      return static_cast<float>(value);
    }
    default: {
      float value = 0;
      std::memcpy(&value, from, 4);
      return value;
    }
  }
}

void encode_float(ElementType type, float value, std::uint8_t* to) {
  switch (type) {
    case ElementType::f16: {
      const std::uint16_t bits = to_half(value);
      std::memcpy(to, &bits, 2);
      return;
    }
    case ElementType::bf16: {
      auto bits = std::bit_cast<std::uint32_t>(value);
      // To the nearest, ties to even; a NaN must not become an infinity.
      bits = std::isnan(value) ? bits | 0x10000U << 6U : bits + 0x7FFFU + ((bits >> 16U) & 1U);
      const auto half = static_cast<std::uint16_t>(bits >> 16U);
      std::memcpy(to, &half, 2);
      return;
    }
    case ElementType::f64: {
      const double wide = value;
      std::memcpy(to, &wide, 8);
      return;
    }
    default:
      std::memcpy(to, &value, 4);
  }
}

void read_floats(const Model& model, const TensorInfo& tensor, std::int64_t begin, std::int64_t count,
                 float* to) {
  require(begin >= 0 && count >= 0 && count <= tensor.elements - begin, "read_floats: beyond the tensor");
  constexpr std::int64_t kChunk = 16 * 1024;
  const InputFile file(tensor.external.empty() ? model.path : tensor.external);
  const std::int64_t width = tensor.part_element_bytes;
  // An element of a list of floats is a float, whatever the tensor's own type.
  const ElementType type = width == element_bytes(tensor.type) ? tensor.type : ElementType::f32;
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(std::min(kChunk, std::max<std::int64_t>(count, 1)) * width));
  std::int64_t first = 0;
  for (const Range& part : tensor.parts) {
    const std::int64_t elements = part.size() / width;
    std::int64_t at = std::max<std::int64_t>(0, begin - first);
    while (count > 0 && at < elements) {
      const std::int64_t now = std::min({count, elements - at, kChunk});
      file.read_at(part.begin + at * width, bytes.data(), now * width);
      for (std::int64_t i = 0; i < now; ++i) *to++ = decode_float(type, bytes.data() + i * width);
      at += now;
      count -= now;
      begin += now;
    }
    first += elements;
  }
}

std::vector<std::int64_t> read_integers(const Model& model, const TensorInfo& tensor) {
  if (tensor.listed) return tensor.integers;
  if (tensor.elements > kMaxListed) {
    throw UserError(fmt::format("{}: {} has {} integers; at most {} are read", model.path, tensor.name,
                                tensor.elements, kMaxListed));
  }
  const InputFile file(tensor.external.empty() ? model.path : tensor.external);
  const std::int64_t width = tensor.part_element_bytes;
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> bytes;
  for (const Range& part : tensor.parts) {
    bytes.resize(static_cast<std::size_t>(part.size()));
    file.read_at(part.begin, bytes.data(), part.size());
    for (std::int64_t i = 0; i < part.size() / width; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * width, static_cast<std::size_t>(width));
      const bool is_signed = tensor.type == ElementType::s8 || tensor.type == ElementType::s16 ||
                             tensor.type == ElementType::s32;
      const auto unused = static_cast<unsigned>(64 - 8 * width);
      values.push_back(is_signed ? static_cast<std::int64_t>(bits << unused) >> unused
                                 : static_cast<std::int64_t>(bits));
    }
  }
  return values;
}

}  // namespace penstock::onnx
