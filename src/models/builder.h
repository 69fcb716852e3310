#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
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

/// Thrown by Builder when a layer's input is smaller than its window.
class TooSmallError : public UserError {
 public:
  using UserError::UserError;
};

/// Builds a forward graph layer by layer. Names are PyTorch's module paths: conv("layer1.0.conv1", ...) makes
/// the parameter "layer1.0.conv1.weight". Layers without parameters take a name too; left empty it is made of
/// the input's
/// ("layer1.0.bn1.relu"). The graph is that of training: batch norm uses the batch's statistics and updates
/// the running ones, dropout is active; lower::for_evaluation() makes the other one of it. A layer that
/// does not fit its input throws UserError that names the layer and the shapes. Owns the graph until
/// finish(); one thread.
class Builder {
 public:
  /// `images`: [N, C, H, W] or [N, C, D, H, W]. `label_shape` of one image: empty for one label an image, [H,
  /// W] for one a pixel.
  Builder(std::string network, ir::Shape images, const std::vector<std::int64_t>& label_shape);

  Value images() const { return images_; }
  const ir::Shape& shape(Value value) const { return graph_.tensor(value).shape; }

  Value conv(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  Value conv_transpose(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  Value linear(const std::string& name, Value x, std::int64_t features, bool bias = true);
  Value matmul(Value a, Value b, const ir::MatmulAttrs& attrs = {}, const std::string& name = {});
  Value bias(const std::string& name, Value x);

  Value batch_norm(const std::string& name, Value x, float epsilon = 1e-5F, float momentum = 0.1F);
  Value layer_norm(const std::string& name, Value x, float epsilon = 1e-5F);
  Value lrn(Value x, const ir::LrnAttrs& attrs, const std::string& name = {});

  Value relu(Value x, const std::string& name = {});
  Value activation(Value x, const ir::ActivationAttrs& attrs, const std::string& name = {});
  Value dropout(Value x, float probability, const std::string& name = {});
  Value add(Value a, Value b, const std::string& name = {});
  Value multiply(Value a, Value b, const std::string& name = {});
  Value softmax(Value x, std::int64_t axis = 1, const std::string& name = {});

  Value max_pool(Value x, const PoolOptions& options, const std::string& name = {});
  Value avg_pool(Value x, const PoolOptions& options, const std::string& name = {});
  Value global_avg_pool(Value x, const std::string& name = {});
  /// PyTorch's AdaptiveAvgPool: `size` values along each spatial axis, whatever the input's extents.
  Value adaptive_avg_pool(Value x, std::int64_t size, const std::string& name = {});
  Value upsample(Value x, const Extents& factor, bool bilinear, const std::string& name = {});

  Value concat(const std::vector<Value>& values, std::int64_t axis = 1, const std::string& name = {});
  std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 1,
                           const std::string& name = {});
  Value pad(Value x, const ir::PadAttrs& attrs, const std::string& name = {});
  Value crop(Value x, const ir::PadAttrs& attrs, const std::string& name = {});
  Value reshape(Value x, ir::Shape shape, const std::string& name = {});
  Value flatten(Value x, const std::string& name = {});  ///< [N, ...] -> [N, K]
  Value transpose(Value x, const std::vector<std::int64_t>& order, const std::string& name = {});

  /// Overrides how the parameter is first filled (by default PyTorch's own rules for the layer).
  void init(const std::string& parameter, ir::Init init);

  /// Ends the network with the cross-entropy of the logits against the labels as its loss; in evaluation
  /// `logits` and the count of right answers, `correct`, are outputs too.
  ir::Graph finish(Value logits);

 private:
  /// The name for a layer that reads `x`: `name` itself, or the input's with `suffix`; UserError if it is
  /// taken.
  std::string layer_name(const std::string& name, Value x, const char* suffix);
  /// Appends an op with one output that is called like the op; UserError if its inputs do not fit.
  Value make(ir::OpKind kind, const std::string& name, std::vector<Value> inputs, ir::Attrs attrs = {});
  std::vector<ir::Shape> infer(ir::OpKind kind, const std::string& name, const std::vector<Value>& inputs,
                               const ir::Attrs& attrs) const;
  Value add_output(const std::string& name, ir::DType dtype, ir::Shape shape, ir::Role role);
  Value parameter(const std::string& name, ir::Shape shape, ir::Init init);
  /// The weight [first, second, kernel...] and the bias [channels] of a convolution.
  std::vector<Value> conv_inputs(const std::string& layer, Value x, std::int64_t first, std::int64_t second,
                                 const Extents& kernel, std::int64_t bias_channels);
  Value adaptive_axis(Value x, std::size_t axis, std::int64_t size, const std::string& name);
  ir::PoolAttrs pool_attrs(const std::string& layer, const char* kind, Value x,
                           const PoolOptions& options) const;

  ir::Graph graph_;
  Value images_ = ir::kNone, labels_ = ir::kNone;
  std::uint32_t dropouts_ = 0;
  std::unordered_set<std::string> layers_;
  std::unordered_map<std::string, Value> parameters_;
};

}  // namespace penstock::models
