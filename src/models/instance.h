#pragma once

#include <cstdint>
#include <string>

#include "penstock/network.h"

namespace penstock::models {

/// One network to be built: the model's entry and the options with its defaults filled in. What every
/// family's builder gets.
struct Instance {
  std::string name;
  Extents images;  ///< [N, C, (D,) H, W]
  std::int64_t classes = 0;
  bool per_pixel = false;
  double width = 1;
  bool dropout = true;

  /// Checks the options; UserError names the one that is out of range.
  Instance(const ModelInfo& info, const ModelOptions& options);

  /// A channel count of the network scaled by `width`, at least 1.
  std::int64_t channels(std::int64_t full) const;
  float dropout_probability(float probability) const { return dropout ? probability : 0; }
  /// A builder with the inputs of the network.
  struct Begun {
    NetworkBuilder net;
    Value images, labels;
  };
  Begun begin() const;
};

/// Normal with deviation sqrt(2 / fan): He's rule for layers before a ReLU.
Init he_normal(std::int64_t fan);

}  // namespace penstock::models
