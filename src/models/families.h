#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/instance.h"

namespace penstock::models {

Network build_lenet(const Instance& instance);
Network build_alexnet(const Instance& instance);
/// `convolutions`: how many 3x3 convolutions each of the five stages has.
Network build_vgg(const Instance& instance, const std::vector<int>& convolutions);
/// `blocks`: residual blocks of each of the four stages.
Network build_resnet(const Instance& instance, bool bottleneck, const std::vector<int>& blocks);
/// The ResNet for small images: three stages of `blocks` basic blocks, 6 * blocks + 2 layers.
Network build_small_resnet(const Instance& instance, int blocks);
/// `layers`: dense layers of each block.
Network build_densenet(const Instance& instance, const std::vector<int>& layers);
Network build_inception_v4(const Instance& instance);
/// 2-D or 3-D after the images' rank. `depth`: how many times the extents are halved.
Network build_unet(const Instance& instance, std::int64_t base_channels, int depth);

/// A vision transformer with patches of 16 x 16, torchvision's names.
struct VitSize {
  std::int64_t layers = 0, heads = 0, width = 0, inner_width = 0;
};
Network build_vit(const Instance& instance, const VitSize& size);

}  // namespace penstock::models
