#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/op.h"

namespace penstock::ir {
namespace {

using Extents = std::vector<std::int64_t>;

/// Writes one attribute after the other; those at their usual value are left out.
class Writer {
 public:
  template <typename T>
  void value(const char* name, const T& value, const T& usual) {
    if (value != usual) item(fmt::format("{} {}", name, value));
  }
  void flag(const char* name, bool set) {
    if (set) item(name);
  }
  /// "2" if all extents are the same, "1x2x2" otherwise.
  void extents(const char* name, const Extents& extents, std::int64_t usual) {
    const bool uniform = std::all_of(extents.begin(), extents.end(), [&](auto e) { return e == extents[0]; });
    if (extents.empty() || (uniform && extents[0] == usual)) return;
    item(uniform ? fmt::format("{} {}", name, extents[0])
                 : fmt::format("{} {}", name, fmt::join(extents, "x")));
  }
  void padding(const Extents& begin, const Extents& end) {
    if (begin == end) return extents("padding", begin, 0);
    item(fmt::format("padding {}:{}", fmt::join(begin, "x"), fmt::join(end, "x")));
  }
  void item(const std::string& text) {
    if (!text_.empty()) text_ += ", ";
    text_ += text;
  }
  std::string take() { return std::move(text_); }

  void operator()(const NoAttrs& /*attrs*/) {}
  void operator()(const ConvAttrs& a) {
    extents("stride", a.stride, 1);
    extents("dilation", a.dilation, 1);
    padding(a.padding_begin, a.padding_end);
    extents("output_padding", a.output_padding, 0);
    value<std::int64_t>("groups", a.groups, 1);
    flag("relu", a.relu);
  }
  void operator()(const LinearAttrs& a) { flag("relu", a.relu); }
  void operator()(const MatmulAttrs& a) {
    flag("transpose_a", a.transpose_a);
    flag("transpose_b", a.transpose_b);
    value("scale", a.scale, 1.0F);
  }
  void operator()(const NormAttrs& a) {
    value("epsilon", a.epsilon, 1e-5F);
    flag("add", a.add);
    flag("relu", a.relu);
    flag("mask", a.mask);
  }
  void operator()(const StatisticsAttrs& a) {
    value("momentum", a.momentum, 0.1F);
    value<std::int64_t>("count", a.count, 0);
  }
  void operator()(const ActivationAttrs& a) {
    item(activation_name(a.function));
    if (a.function == Activation::leaky_relu) value("alpha", a.alpha, 0.01F);
  }
  void operator()(const PoolAttrs& a) {
    extents("kernel", a.kernel, 0);
    extents("stride", a.stride, 1);
    padding(a.padding_begin, a.padding_end);
    flag("exclude_pad", !a.count_include_pad);
  }
  void operator()(const LrnAttrs& a) {
    value<std::int64_t>("size", a.size, 5);
    value("alpha", a.alpha, 1e-4F);
    value("beta", a.beta, 0.75F);
    value("k", a.k, 1.0F);
  }
  void operator()(const DropoutAttrs& a) {
    item(fmt::format("probability {}", a.probability));
    item(fmt::format("key {}", a.key));
  }
  void operator()(const AxisAttrs& a) { item(fmt::format("axis {}", a.axis)); }
  void operator()(const PadAttrs& a) {
    item(fmt::format("begin {}, end {}", fmt::join(a.begin, "x"), fmt::join(a.end, "x")));
    value("value", a.value, 0.0F);
  }
  void operator()(const UpsampleAttrs& a) {
    extents("factor", a.factor, 0);
    item(a.bilinear ? "bilinear" : "nearest");
  }
  void operator()(const TransposeAttrs& a) { item(fmt::format("order {}", fmt::join(a.order, ","))); }
  void operator()(const SgdAttrs& a) {
    value("momentum", a.momentum, 0.0F);
    value("weight_decay", a.weight_decay, 0.0F);
    flag("nesterov", a.nesterov);
    if (a.begin > 0) item(fmt::format("begin {}", a.begin));
  }
  void operator()(const AdamAttrs& a) {
    value("beta1", a.beta1, 0.9F);
    value("beta2", a.beta2, 0.999F);
    value("epsilon", a.epsilon, 1e-8F);
    value("weight_decay", a.weight_decay, 0.0F);
    flag("decoupled", a.decoupled);
    if (a.begin > 0) item(fmt::format("begin {}", a.begin));
  }
  void operator()(const ExchangeAttrs& a) {
    item(exchange_name(a.kind));
    item(fmt::format("bucket {}", a.bucket));
    item(fmt::format("rank {} of {}", a.rank, a.ranks));
    for (std::size_t i = 0; i < a.begins.size(); ++i) {
      item(fmt::format("{}+{}", a.begins[i], a.counts[i]));
    }
  }
  void operator()(const SliceAttrs& a) { item(fmt::format("from {}", a.begin)); }

 private:
  std::string text_;
};

}  // namespace

std::string attrs_text(const Attrs& attrs) {
  Writer writer;
  std::visit([&](const auto& a) { writer(a); }, attrs);
  return writer.take();
}

}  // namespace penstock::ir
