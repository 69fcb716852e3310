#include "ir/attrs_text.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace penstock::ir {

using Extents = std::vector<std::int64_t>;

void AttrsWriter::extents(const char* name, const Extents& extents, std::int64_t usual) {
  const bool uniform = std::all_of(extents.begin(), extents.end(), [&](auto e) { return e == extents[0]; });
  if (extents.empty() || (uniform && extents[0] == usual)) return;
  item(uniform ? fmt::format("{} {}", name, extents[0])
               : fmt::format("{} {}", name, fmt::join(extents, "x")));
}

void AttrsWriter::padding(const Extents& begin, const Extents& end) {
  if (begin == end) return extents("padding", begin, 0);
  item(fmt::format("padding {}:{}", fmt::join(begin, "x"), fmt::join(end, "x")));
}

void write_attrs(AttrsWriter& /*w*/, const NoAttrs& /*attrs*/) {}

void write_attrs(AttrsWriter& w, const ConvAttrs& a) {
  w.extents("stride", a.stride, 1);
  w.extents("dilation", a.dilation, 1);
  w.padding(a.padding_begin, a.padding_end);
  w.extents("output_padding", a.output_padding, 0);
  w.value<std::int64_t>("groups", a.groups, 1);
  w.flag("relu", a.relu);
}

void write_attrs(AttrsWriter& w, const LinearAttrs& a) {
  w.flag("relu", a.relu);
  w.flag("turned", a.turned);
  w.value<std::int64_t>("begin", a.begin, 0);
}

void write_attrs(AttrsWriter& w, const MatmulAttrs& a) {
  w.flag("transpose_a", a.transpose_a);
  w.flag("transpose_b", a.transpose_b);
  w.value("scale", a.scale, 1.0F);
}

void write_attrs(AttrsWriter& w, const NormAttrs& a) {
  w.value("epsilon", a.epsilon, 1e-5F);
  w.flag("add", a.add);
  w.flag("relu", a.relu);
  w.flag("mask", a.mask);
  w.value("ceiling", a.ceiling, 0.0F);
  w.flag("silu", a.silu);
  w.value<std::int64_t>("count", a.count, 0);
}

void write_attrs(AttrsWriter& w, const StatisticsAttrs& a) {
  w.value("momentum", a.momentum, 0.1F);
  w.value<std::int64_t>("count", a.count, 0);
}

void write_attrs(AttrsWriter& w, const CombineAttrs& a) {
  w.item(fmt::format("counts {}", fmt::join(a.counts, ",")));
}

void write_attrs(AttrsWriter& w, const MeanAttrs& a) {
  w.value<std::int64_t>("count", a.count, 0);
}

void write_attrs(AttrsWriter& w, const ActivationAttrs& a) {
  w.item(activation_name(a.function));
  if (a.function == Activation::leaky_relu) w.value("alpha", a.alpha, 0.01F);
}

void write_attrs(AttrsWriter& w, const PoolAttrs& a) {
  w.extents("kernel", a.kernel, 0);
  w.extents("stride", a.stride, 1);
  w.padding(a.padding_begin, a.padding_end);
  w.flag("exclude_pad", !a.count_include_pad);
}

void write_attrs(AttrsWriter& w, const LrnAttrs& a) {
  w.value<std::int64_t>("size", a.size, 5);
  w.value("alpha", a.alpha, 1e-4F);
  w.value("beta", a.beta, 0.75F);
  w.value("k", a.k, 1.0F);
}

void write_attrs(AttrsWriter& w, const DropoutAttrs& a) {
  w.item(fmt::format("probability {}", a.probability));
  w.item(fmt::format("key {}", a.key));
  w.value<std::int64_t>("first sample", a.first_sample, 0);
}

void write_attrs(AttrsWriter& w, const AxisAttrs& a) {
  w.item(fmt::format("axis {}", a.axis));
}

void write_attrs(AttrsWriter& w, const PadAttrs& a) {
  w.item(fmt::format("begin {}, end {}", fmt::join(a.begin, "x"), fmt::join(a.end, "x")));
  w.value("value", a.value, 0.0F);
}

void write_attrs(AttrsWriter& w, const UpsampleAttrs& a) {
  w.extents("factor", a.factor, 0);
  w.item(a.bilinear ? "bilinear" : "nearest");
}

void write_attrs(AttrsWriter& w, const TransposeAttrs& a) {
  w.item(fmt::format("order {}", fmt::join(a.order, ",")));
}

void write_attrs(AttrsWriter& w, const SgdAttrs& a) {
  w.value("momentum", a.momentum, 0.0F);
  w.value("weight_decay", a.weight_decay, 0.0F);
  w.flag("nesterov", a.nesterov);
  if (a.begin > 0) w.item(fmt::format("begin {}", a.begin));
  w.value("gradient_scale", a.gradient_scale, 1.0F);
  w.flag("clipped", a.clipped);
}

void write_attrs(AttrsWriter& w, const AdamAttrs& a) {
  w.value("beta1", a.beta1, 0.9F);
  w.value("beta2", a.beta2, 0.999F);
  w.value("epsilon", a.epsilon, 1e-8F);
  w.value("weight_decay", a.weight_decay, 0.0F);
  w.flag("decoupled", a.decoupled);
  if (a.begin > 0) w.item(fmt::format("begin {}", a.begin));
  w.value("gradient_scale", a.gradient_scale, 1.0F);
  w.flag("clipped", a.clipped);
  w.flag("bf16_moments", a.bf16_moments);
  w.value("key", a.key, 0U);
}

void write_attrs(AttrsWriter& w, const ExchangeAttrs& a) {
  w.item(exchange_name(a.kind));
  w.item(fmt::format("bucket {}", a.bucket));
  w.item(fmt::format("rank {} of {}", a.rank, a.ranks));
  for (std::size_t i = 0; i < a.begins.size(); ++i) {
    w.item(fmt::format("{}+{}", a.begins[i], a.counts[i]));
  }
}

void write_attrs(AttrsWriter& w, const SliceAttrs& a) {
  w.item(fmt::format("from {}", a.begin));
}

void write_attrs(AttrsWriter& w, const PortAttrs& a) {
  w.item(fmt::format("port {}", a.port));
}

void write_attrs(AttrsWriter& w, const PointwiseAttrs& a) {
  w.item(program_text(a.program));
}

void write_attrs(AttrsWriter& w, const ReduceAttrs& a) {
  w.item(reduction_name(a.function));
  w.item(fmt::format("axes {}", fmt::join(a.axes, ",")));
}

void write_attrs(AttrsWriter& w, const StridedAttrs& a) {
  w.item(fmt::format("begin {}, step {}", fmt::join(a.begin, ","), fmt::join(a.step, ",")));
}

void write_attrs(AttrsWriter& w, const NllAttrs& a) {
  w.value("smoothing", a.smoothing, 0.0F);
  w.value<std::int32_t>("ignored", a.ignored, -100);
}

}  // namespace penstock::ir
