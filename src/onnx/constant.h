#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace penstock::onnx {

/// A small tensor whose elements are known when the network is built: shapes, axes, indices, factors.
struct Constant {
  ElementType type = ElementType::s64;
  Extents dims;
  std::vector<std::int64_t> integers;  ///< of integer and boolean types
  std::vector<double> floats;          ///< of floating types

  bool floating() const { return is_floating(type); }
  std::int64_t size() const {
    return static_cast<std::int64_t>(floating() ? floats.size() : integers.size());
  }
  double number(std::size_t i) const { return floating() ? floats[i] : static_cast<double>(integers[i]); }
};

Constant make_shape_constant(const Extents& shape);

/// What the node makes of constants, one for each of its outputs; nothing if it is no op on constants that
/// this knows, or if what it makes is not small. Inputs that the node leaves out are null. UserError if they
/// do not fit.
std::optional<std::vector<Constant>> fold(const Model& model, const Node& node,
                                          const std::vector<const Constant*>& inputs);

/// How a message names a node: "node 'conv1' (Conv)".
std::string node_text(const Node& node);

}  // namespace penstock::onnx
