#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "penstock/network.h"

namespace penstock::models {

using penstock::ModelOptions;

struct ModelInfo {
  std::string name;
  std::string description;
  std::int64_t channels = 3, image_size = 224, classes = 1000;  ///< defaults
  bool per_pixel = false;                                       ///< labels are one a pixel (voxel)
  bool volumetric = false;                                      ///< images are [N, C, D, H, W]
};

/// All models, in the order they are listed to the user; the family `resnet-N` is one entry.
std::vector<ModelInfo> list_models();

/// The entry of `name` ("resnet-1001" finds the family's, with its own name). Throws UserError that suggests
/// what was meant; for a depth that cannot be reached it names the nearest two.
ModelInfo find_model(const std::string& name);

/// The model's forward graph with its loss, for images [N, C, ...] and labels (inputs `images`, `labels`;
/// outputs `loss` and, in evaluation, `logits` and `correct`). Throws UserError if an option is out of range
/// or the image too small for the network; it then names the smallest that works.
ir::Graph build_model(const std::string& name, const ModelOptions& options);

}  // namespace penstock::models
