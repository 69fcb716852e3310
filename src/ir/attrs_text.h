#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "ir/attrs.h"

namespace penstock::ir {

/// Writes one attribute after the other; those at their usual value are left out.
class AttrsWriter {
 public:
  template <typename T>
  void value(const char* name, const T& value, const T& usual) {
    if (value != usual) item(fmt::format("{} {}", name, value));
  }
  void flag(const char* name, bool set) {
    if (set) item(name);
  }
  /// "2" if all extents are the same, "1x2x2" otherwise.
  void extents(const char* name, const std::vector<std::int64_t>& extents, std::int64_t usual);
  void padding(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end);
  void item(const std::string& text) {
    if (!text_.empty()) text_ += ", ";
    text_ += text;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_attrs(AttrsWriter& w, const NoAttrs& attrs);
void write_attrs(AttrsWriter& w, const ConvAttrs& attrs);
void write_attrs(AttrsWriter& w, const LinearAttrs& attrs);
void write_attrs(AttrsWriter& w, const MatmulAttrs& attrs);
void write_attrs(AttrsWriter& w, const NormAttrs& attrs);
void write_attrs(AttrsWriter& w, const StatisticsAttrs& attrs);
void write_attrs(AttrsWriter& w, const CombineAttrs& attrs);
void write_attrs(AttrsWriter& w, const MeanAttrs& attrs);
void write_attrs(AttrsWriter& w, const ActivationAttrs& attrs);
void write_attrs(AttrsWriter& w, const PoolAttrs& attrs);
void write_attrs(AttrsWriter& w, const LrnAttrs& attrs);
void write_attrs(AttrsWriter& w, const DropoutAttrs& attrs);
void write_attrs(AttrsWriter& w, const AxisAttrs& attrs);
void write_attrs(AttrsWriter& w, const PadAttrs& attrs);
void write_attrs(AttrsWriter& w, const UpsampleAttrs& attrs);
void write_attrs(AttrsWriter& w, const TransposeAttrs& attrs);
void write_attrs(AttrsWriter& w, const SgdAttrs& attrs);
void write_attrs(AttrsWriter& w, const AdamAttrs& attrs);
void write_attrs(AttrsWriter& w, const ExchangeAttrs& attrs);
void write_attrs(AttrsWriter& w, const SliceAttrs& attrs);
void write_attrs(AttrsWriter& w, const PortAttrs& attrs);
void write_attrs(AttrsWriter& w, const AttentionAttrs& attrs);
void write_attrs(AttrsWriter& w, const LayerNormAttrs& attrs);
void write_attrs(AttrsWriter& w, const EmbeddingAttrs& attrs);
void write_attrs(AttrsWriter& w, const RotaryAttrs& attrs);
void write_attrs(AttrsWriter& w, const GateAttrs& attrs);
void write_attrs(AttrsWriter& w, const OutputLossAttrs& attrs);
void write_attrs(AttrsWriter& w, const ClipAttrs& attrs);
void write_attrs(AttrsWriter& w, const PointwiseAttrs& attrs);
void write_attrs(AttrsWriter& w, const ReduceAttrs& attrs);
void write_attrs(AttrsWriter& w, const StridedAttrs& attrs);
void write_attrs(AttrsWriter& w, const NllAttrs& attrs);

}  // namespace penstock::ir
