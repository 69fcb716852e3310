#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ir/dtype.h"
#include "ir/name.h"
#include "ir/shape.h"

namespace penstock::ir {

using TensorId = std::int32_t;
using OpId = std::int32_t;
using StorageId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

/// What a tensor is for. State (parameter, buffer, optimizer_state) lives across steps.
enum class Role : std::uint8_t {
  input,            ///< written by the caller of the step
  parameter,        ///< trained weights
  buffer,           ///< state that is not trained: running statistics of batch norm, frozen weights
  optimizer_state,  ///< momentum, Adam's moments
  activation,       ///< made in forward
  gradient,         ///< made in backward
  workspace,        ///< made by a kernel in forward for its own backward: ReLU masks, pooling indices
};

constexpr bool is_state(Role role) {
  return role == Role::parameter || role == Role::buffer || role == Role::optimizer_state;
}

const char* role_name(Role role);

/// How a tensor's elements lie in memory. Empty tag: plain row-major order. Anything else is a kernel
/// backend's own: two layouts are the same if their tags are, and only the backend that made `descriptor`
/// looks inside.
/// Immutable; copies share it.
class Layout {
 public:
  Layout() = default;
  Layout(std::string tag, std::int64_t size_bytes, std::shared_ptr<const void> descriptor = nullptr)
      : order_(std::make_shared<const Order>(Order{std::move(tag), size_bytes, std::move(descriptor)})) {}

  bool is_plain() const { return tag().empty(); }
  const std::string& tag() const { return order().tag; }
  std::int64_t size_bytes() const { return order().size_bytes; }
  const void* descriptor() const { return order().descriptor.get(); }
  bool operator==(const Layout& other) const {
    return order_ == other.order_ || (tag() == other.tag() && size_bytes() == other.size_bytes());
  }

 private:
  struct Order {
    std::string tag;
    std::int64_t size_bytes = 0;
    std::shared_ptr<const void> descriptor;
  };
  const Order& order() const {
    static const Order plain;
    return order_ ? *order_ : plain;
  }

  std::shared_ptr<const Order> order_;  ///< null: plain
};

/// The first values of a state tensor.
struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  float value = 0;  ///< the constant; the bound b of uniform(-b, b); the deviation of normal(0, d)
};

/// A value of the step. Each tensor is written by one op only (state that enters the step by none); ops that
/// update in place write a new tensor that shares the old one's storage.
struct Tensor {
  Name name;
  Shape shape;
  Layout layout;
  StorageId storage = kNone;  ///< tensors of one storage take turns in the same memory
  OpId producer = kNone;
  Init init;  ///< of state that enters the step
  DType dtype = DType::f32;
  Role role = Role::activation;
  bool pinned = false;  ///< the network works on it beside compute: its storage never leaves memory

  std::int64_t size_bytes() const {
    return layout.is_plain() ? shape.elements() * dtype_bytes(dtype) : layout.size_bytes();
  }
};

}  // namespace penstock::ir
