#include "ir/text_attrs.h"

#include "base/error.h"
#include "ir/attrs_text.h"

namespace penstock::ir {

const char* gate_name(Gate function) {
  switch (function) {
    case Gate::silu:
      return "silu";
    case Gate::gelu:
      return "gelu";
    case Gate::gelu_tanh:
      return "gelu_tanh";
  }
  throw InternalError("gate_name: not a gate");
}

void write_attrs(AttrsWriter& w, const AttentionAttrs& a) {
  if (a.layout == AttentionLayout::rows) w.item("rows");
  if (a.layout == AttentionLayout::heads) w.item("heads apart");
  w.value<std::int64_t>("heads", a.heads, 1);
  w.value<std::int64_t>("kv_heads", a.kv_heads, 1);
  w.flag("causal", a.causal);
  w.value("scale", a.scale, 1.0F);
  w.value("dropout", a.dropout, 0.0F);
  w.value("key", a.key, 0U);
  w.value<std::int64_t>("first sample", a.first_sample, 0);
}

void write_attrs(AttrsWriter& w, const LayerNormAttrs& a) {
  w.value("epsilon", a.epsilon, 1e-5F);
  w.flag("rms", a.rms);
  w.flag("add", a.add);
}

void write_attrs(AttrsWriter& w, const EmbeddingAttrs& a) {
  w.value<std::int64_t>("begin", a.begin, 0);
}

void write_attrs(AttrsWriter& w, const RotaryAttrs& a) {
  w.value<std::int64_t>("head_width", a.head_width, 0);
  w.value<std::int64_t>("rotated", a.rotated, 0);
  w.value("base", a.base, 10000.0F);
  w.flag("interleaved", a.interleaved);
  w.flag("inverse", a.inverse);
  w.value("factor", a.factor, 1.0F);
  w.value("low_turns", a.low_turns, 0.0F);
  w.value("high_turns", a.high_turns, 0.0F);
  w.value<std::int64_t>("original_length", a.original_length, 0);
}

void write_attrs(AttrsWriter& w, const GateAttrs& a) {
  w.item(gate_name(a.function));
}

void write_attrs(AttrsWriter& w, const OutputLossAttrs& a) {
  w.value("smoothing", a.smoothing, 0.0F);
  w.value<std::int64_t>("begin", a.begin, 0);
}

void write_attrs(AttrsWriter& w, const ClipAttrs& a) {
  w.value("norm", a.norm, 1.0F);
  w.value("weight", a.weight, 1.0F);
}

}  // namespace penstock::ir
