#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace penstock::models {

/// A tensor of the network being built.
using Value = ir::TensorId;

/// One value per spatial axis, or one for all.
using Extents = std::vector<std::int64_t>;

struct ConvOptions {
  Extents kernel{3};
  Extents stride{1};
  Extents padding{0};  ///< the same at both ends
  Extents dilation{1};
  Extents output_padding{0};  ///< conv_transpose only
  std::int64_t groups = 1;
  bool bias = true;
};

struct PoolOptions {
  Extents kernel{2};
  Extents stride{2};
  Extents padding{0};
  bool count_include_pad = true;
};

/// Builds a forward graph layer by layer. Names are PyTorch's module paths: conv("layer1.0.conv1", ...) makes the parameter
/// "layer1.0.conv1.weight". In training mode batch norm uses the batch's statistics and updates the running ones, and dropout
/// is active; otherwise running statistics are used and dropout is nothing. A layer that does not fit its input
/// throws UserError that names the layer and the shapes (an image too small for the network, say).
class Builder {
 public:
  /// `images`: [N, C, H, W] or [N, C, D, H, W]. `label_shape` of one image: empty for one label an image, [H, W] for one a pixel.
  Builder(std::string network, ir::Shape images, std::vector<std::int64_t> label_shape, bool training);

  Value images() const { return graph_.images; }
  const ir::Shape& shape(Value value) const { return graph_.tensor(value).shape; }

  Value conv(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  Value conv_transpose(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  Value linear(const std::string& name, Value x, std::int64_t features, bool bias = true);
  Value matmul(Value a, Value b, const ir::MatmulAttrs& attrs = {});
  Value bias(const std::string& name, Value x);
  Value batch_norm(const std::string& name, Value x, float epsilon = 1e-5F, float momentum = 0.1F);
  Value layer_norm(const std::string& name, Value x, float epsilon = 1e-5F);
  Value relu(Value x);
  Value activation(Value x, const ir::ActivationAttrs& attrs);
  Value max_pool(Value x, const PoolOptions& options);
  Value avg_pool(Value x, const PoolOptions& options);
  Value global_avg_pool(Value x);
  Value lrn(Value x, const ir::LrnAttrs& attrs);
  Value dropout(Value x, float probability);
  Value add(Value a, Value b);
  Value multiply(Value a, Value b);
  Value concat(const std::vector<Value>& values, std::int64_t axis = 1);
  std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 1);
  Value pad(Value x, const ir::PadAttrs& attrs);
  Value upsample(Value x, const Extents& factor, bool bilinear);
  Value reshape(Value x, ir::Shape shape);
  Value flatten(Value x);  ///< [N, ...] -> [N, K]
  Value transpose(Value x, std::vector<std::int64_t> order);
  Value softmax(Value x, std::int64_t axis = 1);

  /// Overrides how the parameter is first filled (by default PyTorch's own rules for the layer).
  void init(const std::string& parameter, ir::Init init);

  /// Ends the network: cross-entropy of the logits against the labels, and in evaluation the count of right answers.
  ir::Graph finish(Value logits);

 private:
  Value make(ir::OpKind kind, const std::string& name, std::vector<Value> inputs, ir::Shape shape, ir::Attrs attrs);
  Extents spatial(const std::string& name, Value x, const Extents& given) const;

  ir::Graph graph_;
  bool training_;
  std::uint32_t dropouts_ = 0;
  int unnamed_ = 0;
};

}  // namespace penstock::models
