#pragma once

#include <cstdint>

namespace penstock::ir {

enum class DType : std::uint8_t { f32, s32, u8 };

constexpr std::int64_t dtype_bytes(DType dtype) {
  return dtype == DType::u8 ? 1 : 4;
}

constexpr const char* dtype_name(DType dtype) {
  return dtype == DType::f32 ? "f32" : dtype == DType::s32 ? "s32" : "u8";
}

}  // namespace penstock::ir
