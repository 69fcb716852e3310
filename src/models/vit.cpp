#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/families.h"

namespace penstock::models {
namespace {

constexpr std::int64_t kPatch = 16;
constexpr float kEpsilon = 1e-6F;

Init normal(double deviation) {
  return Init::normal(static_cast<float>(deviation));
}

/// Xavier's uniform rule.
Init xavier(std::int64_t inputs, std::int64_t outputs) {
  return Init::uniform(static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs + outputs))));
}

/// One network under construction. Rows [N, 1 + patches, width] pass through the layers; the first, of the
/// class token, is what the head reads.
class Vit {
 public:
  Vit(const Instance& instance, const VitSize& size)
      : name_(instance.name),
        size_(size),
        classes_(instance.classes),
        begun_(instance.begin()),
        net_(begun_.net) {
    // A head keeps its share of the width.
    const std::int64_t head_width = instance.channels(size.width / size.heads);
    size_.width = size.heads * head_width;
    size_.inner_width = instance.channels(size.inner_width);
  }

  Network build() {
    Value x = embed(begun_.images);
    Value more;  // what the layer before adds to x
    for (std::int64_t i = 0; i < size_.layers; ++i) {
      const NetworkBuilder::Scope layer(net_, fmt::format("encoder.layers.encoder_layer_{}", i));
      const Normed first = norm("ln_1", x, more);
      const Normed second = norm("ln_2", first.sum, attend(first.y));
      more = transform(second.y);
      x = second.sum;
    }
    // Only the class token's row is needed from here on.
    const Value last = norm("encoder.ln", class_row(x, "class_row"), class_row(more, "class_more")).y;
    const Value y = net_.linear("heads.head", last, classes_);
    net_.init("heads.head.weight", Init::constant(0));
    net_.init("heads.head.bias", Init::constant(0));
    net_.classifier(y, begun_.labels);
    return net_.finish();
  }

 private:
  using Normed = NetworkBuilder::Normed;

  Value embed(Value images) {
    const Extents in = net_.shape(images);
    if (in[2] % kPatch != 0) {
      throw UserError(
          fmt::format("{} takes images whose edge is a multiple of {}, not {}", name_, kPatch, in[2]));
    }
    ConvOptions patches;
    patches.kernel = patches.stride = {kPatch};
    Value x = net_.conv("conv_proj", images, size_.width, patches);
    net_.init("conv_proj.weight", normal(std::sqrt(1.0 / static_cast<double>(in[1] * kPatch * kPatch))));
    net_.init("conv_proj.bias", Init::constant(0));
    const std::int64_t batch = in[0], rows = (in[2] / kPatch) * (in[3] / kPatch);
    x = net_.transpose(net_.reshape(x, {batch, size_.width, rows}, "patches"), {0, 2, 1}, "patch_rows");
    x = net_.pad(x, {0, 1, 0}, {0, 0, 0}, 0, "with_class_row");
    const Value token = net_.parameter("class_token", {1, 1, size_.width});
    const Value positions =
        net_.parameter("encoder.pos_embedding", {1, rows + 1, size_.width}, Init::normal(0.02F));
    // The class token is added to the positions: both are the same for all images.
    const Value same =
        net_.add(positions, net_.pad(token, {0, 0, 0}, {0, rows, 0}, 0, "class_token_row"), "positions");
    const std::int64_t values = (rows + 1) * size_.width;
    x = net_.bias(net_.reshape(x, {batch, values}, "flat_rows"),
                  net_.reshape(same, {values}, "flat_positions"), "embedded");
    return net_.reshape(x, {batch, rows + 1, size_.width}, "rows");
  }

  Normed norm(const std::string& name, Value x, Value more) {
    const Value gamma = net_.parameter(name + ".weight", {size_.width}, Init::constant(1));
    const Value beta = net_.parameter(name + ".bias", {size_.width}, Init::constant(0));
    if (more == Value{}) return {net_.layer_norm(x, gamma, beta, kEpsilon, name), x};
    return net_.add_layer_norm(x, more, gamma, beta, kEpsilon, name);
  }

  Value attend(Value x) {
    const NetworkBuilder::Scope part(net_, "self_attention");
    const Value weight = net_.parameter("in_proj_weight", {3 * size_.width, size_.width},
                                        xavier(size_.width, 3 * size_.width));
    const Value bias = net_.parameter("in_proj_bias", {3 * size_.width}, Init::constant(0));
    AttentionOptions options;
    options.heads = size_.heads;
    const Value y = net_.attention(net_.linear(x, weight, bias, false, "in_proj"), options, "attention");
    const Value out = net_.linear("out_proj", y, size_.width);
    net_.init("out_proj.bias", Init::constant(0));
    return out;
  }

  Value transform(Value x) {
    const NetworkBuilder::Scope part(net_, "mlp");
    const Value wide = net_.gate(Gate::gelu, linear("0", x, size_.inner_width), {}, "1");
    return linear("3", wide, size_.width);
  }

  Value linear(const std::string& name, Value x, std::int64_t outputs) {
    const std::int64_t inputs = net_.shape(x).back();
    const Value weight = net_.parameter(name + ".weight", {outputs, inputs}, xavier(inputs, outputs));
    const Value bias = net_.parameter(name + ".bias", {outputs}, Init::normal(1e-6F));
    return net_.linear(x, weight, bias, false, name);
  }

  /// [N, 1 + patches, width] -> [N, width]
  Value class_row(Value x, const std::string& name) {
    const Extents in = net_.shape(x);
    return net_.reshape(net_.crop(x, {0, 0, 0}, {0, in[1] - 1, 0}, name), {in[0], in[2]}, name + ".flat");
  }

  std::string name_;
  VitSize size_;
  std::int64_t classes_;
  Instance::Begun begun_;
  NetworkBuilder& net_;
};

}  // namespace

Network build_vit(const Instance& instance, const VitSize& size) {
  return Vit(instance, size).build();
}

}  // namespace penstock::models
