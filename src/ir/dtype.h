#pragma once

#include <cstdint>

#include "penstock/network.h"

namespace penstock::ir {

using penstock::DType;

constexpr std::int64_t dtype_bytes(DType dtype) {
  return dtype == DType::u8 ? 1 : 4;
}

constexpr const char* dtype_name(DType dtype) {
  return dtype == DType::f32 ? "f32" : dtype == DType::s32 ? "s32" : "u8";
}

}  // namespace penstock::ir
