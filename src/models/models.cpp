#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "models/families.h"
#include "models/sliding.h"
#include "models/text_catalog.h"
#include "penstock/network.h"

namespace penstock {
namespace models {
namespace {

struct Entry {
  ModelInfo info;
  std::function<Network(const Instance&)> build;
};

constexpr const char* kDeepPrefix = "resnet-";
constexpr std::int64_t kDeepBase = 44;  ///< blocks of the first, second and fourth stage
constexpr std::int64_t kDeepestThirdStage = 100000;

/// Depth of the deep residual network whose third stage has n blocks.
std::int64_t deep_depth(std::int64_t n) {
  return 3 * (kDeepBase + n) + 2;
}

ModelInfo deep_info(const std::string& name) {
  return {name,
          "residual network of N layers, bottleneck blocks, stages 6, 32, n, 6 with N = 3 (44 + n) + 2"};
}

const std::vector<Entry>& catalog() {
  static const std::vector<Entry> entries{
      {{"lenet", "LeNet-5 with ReLU and max pooling", 1, 28, 10}, build_lenet},
      {{"alexnet", "AlexNet, torchvision's one-tower variant"}, build_alexnet},
      {{"vgg16", "VGG, 16 layers"},
       [](const Instance& i) {
         return build_vgg(i, {2, 2, 3, 3, 3});
       }},
      {{"vgg19", "VGG, 19 layers"},
       [](const Instance& i) {
         return build_vgg(i, {2, 2, 4, 4, 4});
       }},
      {{"resnet20", "residual network of 20 layers for small images", 1, 28, 10},
       [](const Instance& i) { return build_small_resnet(i, 3); }},
      {{"resnet18", "residual network, 18 layers"},
       [](const Instance& i) {
         return build_resnet(i, false, {2, 2, 2, 2});
       }},
      {{"resnet34", "residual network, 34 layers"},
       [](const Instance& i) {
         return build_resnet(i, false, {3, 4, 6, 3});
       }},
      {{"resnet50", "residual network, 50 layers"},
       [](const Instance& i) {
         return build_resnet(i, true, {3, 4, 6, 3});
       }},
      {{"resnet101", "residual network, 101 layers"},
       [](const Instance& i) {
         return build_resnet(i, true, {3, 4, 23, 3});
       }},
      {{"resnet152", "residual network, 152 layers"},
       [](const Instance& i) {
         return build_resnet(i, true, {3, 8, 36, 3});
       }},
      {deep_info("resnet-N"), nullptr},
      {{"densenet121", "densely connected network, 121 layers"},
       [](const Instance& i) {
         return build_densenet(i, {6, 12, 24, 16});
       }},
      {{"inception-v4", "Inception-v4", 3, 299}, build_inception_v4},
      {{"unet", "U-Net: a class for each pixel", 3, 224, 2, true},
       [](const Instance& i) { return build_unet(i, 64, 4); }},
      {{"unet3d", "3-D U-Net: a class for each voxel of a cube", 1, 64, 4, true, true},
       [](const Instance& i) { return build_unet(i, 32, 3); }},
      {{"vit_b_16", "vision transformer, base, patches of 16 x 16"},
       [](const Instance& i) {
         return build_vit(i, {12, 12, 768, 3072});
       }},
      {{"vit_l_16", "vision transformer, large, patches of 16 x 16"},
       [](const Instance& i) {
         return build_vit(i, {24, 16, 1024, 4096});
       }},
  };
  return entries;
}

/// How many letters to insert, remove or replace to come from `a` to `b`.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void throw_unknown(const std::string& name) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const Entry& entry : catalog())
    near.emplace_back(edit_distance(name, entry.info.name), entry.info.name);
  for (const TextInfo& info : list_text_infos()) near.emplace_back(edit_distance(name, info.name), info.name);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  throw UserError(fmt::format("unknown model '{}'; the closest are {}, {} and {}", name, near[0].second,
                              near[1].second, near[2].second));
}

/// Blocks of the third stage of "resnet-1001"; nothing if the name is not of this form.
std::optional<std::int64_t> deep_third_stage(const std::string& name) {
  const std::string prefix = kDeepPrefix;
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const std::int64_t shallowest = deep_depth(1);
  const std::int64_t deepest = deep_depth(kDeepestThirdStage);
  const std::int64_t depth = digits.size() > 9 ? deepest + 1 : std::stoll(digits);
  if (depth < shallowest || depth > deepest) {
    throw UserError(
        fmt::format("{} cannot be built: resnet-N reaches from {} to {} layers, the nearest two are "
                    "resnet-{} and resnet-{}",
                    name, shallowest, deepest, depth < shallowest ? shallowest : deepest - 3,
                    depth < shallowest ? shallowest + 3 : deepest));
  }
  const std::int64_t n = (depth - 2) / 3 - kDeepBase;
  if (deep_depth(n) != depth) {
    throw UserError(fmt::format(
        "{} cannot be built: N must be 3 (44 + n) + 2; the nearest two are resnet-{} and resnet-{}", name,
        deep_depth(n), deep_depth(n + 1)));
  }
  return n;
}

Entry find_entry(const std::string& name) {
  if (const auto n = deep_third_stage(name)) {
    return {deep_info(name), [n](const Instance& i) {
              return build_resnet(i, true, {6, 32, static_cast<int>(*n), 6});
            }};
  }
  for (const Entry& entry : catalog()) {
    if (entry.info.name == name && entry.build) return entry;
  }
  throw_unknown(name);
}

bool image_fits(const Entry& entry, ModelOptions options, std::int64_t image_size) {
  options.batch = 1;
  options.image_size = image_size;
  try {
    entry.build(Instance(entry.info, options));
  } catch (const UserError&) {
    return false;
  }
  return true;
}

/// The smallest image the network takes, between one that is too small and the model's default.
std::int64_t smallest_image(const Entry& entry, const ModelOptions& options, std::int64_t too_small) {
  std::int64_t fits = std::max(entry.info.image_size, too_small + 1);
  while (fits - too_small > 1) {
    const std::int64_t middle = too_small + (fits - too_small) / 2;
    (image_fits(entry, options, middle) ? fits : too_small) = middle;
  }
  return fits;
}

/// A text model has its vocabulary as classes, and no images.
ModelInfo info_of(const TextInfo& text) {
  return {text.name, text.description, 0, 0, text.vocabulary};
}

}  // namespace

}  // namespace models

std::vector<ModelInfo> list_models() {
  std::vector<ModelInfo> infos;
  for (const models::Entry& entry : models::catalog()) infos.push_back(entry.info);
  for (const models::TextInfo& info : models::list_text_infos()) infos.push_back(models::info_of(info));
  return infos;
}

ModelInfo find_model(const std::string& name) {
  if (const auto text = models::find_text_info(name)) return models::info_of(*text);
  return models::find_entry(name).info;
}

Network Network::model(const std::string& name, const ModelOptions& options) {
  if (models::is_text_model(name)) {
    if (options.channels != 0 || options.image_size != 0)
      throw UserError(fmt::format("{} takes text: it has neither channels nor an image size", name));
    return models::build_text_model(name,
                                    {options.batch, options.sequence, options.classes, options.dropout});
  }
  const models::Entry entry = models::find_entry(name);
  if (options.sequence != 0)
    throw UserError(fmt::format("{} is a network for images, it has no sequence", name));
  const models::Instance instance(entry.info, options);
  try {
    return entry.build(instance);
  } catch (const TooSmallError& error) {
    const Extents extents(instance.images.begin() + 2, instance.images.end());
    const std::int64_t smallest = models::smallest_image(entry, options, extents[0]);
    throw TooSmallError(fmt::format("image {} is too small for {}: {}; use {} or larger",
                                    extents_text(extents), name, error.what(),
                                    extents_text(Extents(extents.size(), smallest))));
  }
}

}  // namespace penstock
