#include "kernels/cpu/half_layout.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/bytes.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/native/function_kernel.h"

namespace penstock::kernels::cpu {
namespace {

constexpr const char* kPrefix = "bf16";
constexpr std::int64_t kAlignment = 64;

float widened(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// To the nearest, to even in the middle.
std::uint16_t narrowed(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace

ir::Layout half_layout(const ir::Tensor& tensor, const ir::Layout& order) {
  return {kPrefix + order.tag(), 2 * floats_of(tensor, order), std::make_shared<const ir::Layout>(order)};
}

bool is_half(const ir::Layout& layout) {
  return layout.tag().starts_with(kPrefix);
}

const ir::Layout& order_of(const ir::Layout& half) {
  return *static_cast<const ir::Layout*>(half.descriptor());
}

std::shared_ptr<const Kernel> make_widening(std::int64_t count) {
  return native::make_kernel([count](const KernelArgs& args) {
    const auto* from = static_cast<const std::uint16_t*>(args.inputs[0]);
    auto* to = static_cast<float*>(args.outputs[0]);
    for (std::int64_t i = 0; i < count; ++i) to[i] = widened(from[i]);
  });
}

std::shared_ptr<const Kernel> make_narrowing(std::int64_t count) {
  return native::make_kernel([count](const KernelArgs& args) {
    const auto* from = static_cast<const float*>(args.inputs[0]);
    auto* to = static_cast<std::uint16_t*>(args.outputs[0]);
    for (std::int64_t i = 0; i < count; ++i) to[i] = narrowed(from[i]);
  });
}

std::shared_ptr<const Kernel> make_chain(std::shared_ptr<const Kernel> first,
                                         std::shared_ptr<const Kernel> second, std::int64_t between_bytes) {
  const std::int64_t between = round_up(between_bytes, kAlignment);
  const std::int64_t scratch = between + std::max(first->scratch_bytes(), second->scratch_bytes());
  return native::make_kernel(
      [first = std::move(first), second = std::move(second), between](const KernelArgs& args) {
        auto* middle = static_cast<std::byte*>(args.scratch);
        const std::array<const void*, 1> made{middle};
        const std::array<void*, 1> makes{middle};
        first->run({args.inputs, makes, middle + between, args.step});
        second->run({made, args.outputs, middle + between, args.step});
      },
      {}, scratch);
}

}  // namespace penstock::kernels::cpu
