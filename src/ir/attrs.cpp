#include "ir/attrs.h"

#include "base/error.h"
#include "ir/attrs_text.h"

namespace penstock::ir {
namespace {

template <typename T>
class Held : public Attrs::Holder {
 public:
  explicit Held(T value) : value_(std::move(value)) {}
  const std::type_info& type() const override { return typeid(T); }
  const void* value() const override { return &value_; }
  bool equals(const Attrs::Holder& other) const override {
    return value_ == *static_cast<const T*>(other.value());
  }
  std::string text() const override {
    AttrsWriter writer;
    write_attrs(writer, value_);
    return writer.take();
  }

 private:
  T value_;
};

}  // namespace

template <typename T>
requires(!std::is_same_v<T, Attrs>) Attrs::Attrs(T attrs)
    : held_(std::make_shared<const Held<T>>(std::move(attrs))) {}

template Attrs::Attrs(NoAttrs);
template Attrs::Attrs(ConvAttrs);
template Attrs::Attrs(LinearAttrs);
template Attrs::Attrs(MatmulAttrs);
template Attrs::Attrs(NormAttrs);
template Attrs::Attrs(StatisticsAttrs);
template Attrs::Attrs(CombineAttrs);
template Attrs::Attrs(MeanAttrs);
template Attrs::Attrs(ActivationAttrs);
template Attrs::Attrs(PoolAttrs);
template Attrs::Attrs(LrnAttrs);
template Attrs::Attrs(DropoutAttrs);
template Attrs::Attrs(AxisAttrs);
template Attrs::Attrs(PadAttrs);
template Attrs::Attrs(UpsampleAttrs);
template Attrs::Attrs(TransposeAttrs);
template Attrs::Attrs(SgdAttrs);
template Attrs::Attrs(AdamAttrs);
template Attrs::Attrs(ExchangeAttrs);
template Attrs::Attrs(SliceAttrs);
template Attrs::Attrs(PortAttrs);
template Attrs::Attrs(AttentionAttrs);
template Attrs::Attrs(LayerNormAttrs);
template Attrs::Attrs(EmbeddingAttrs);
template Attrs::Attrs(RotaryAttrs);
template Attrs::Attrs(GateAttrs);
template Attrs::Attrs(OutputLossAttrs);
template Attrs::Attrs(ClipAttrs);
template Attrs::Attrs(PointwiseAttrs);
template Attrs::Attrs(ReduceAttrs);
template Attrs::Attrs(StridedAttrs);
template Attrs::Attrs(NllAttrs);

const Attrs::Holder& Attrs::held() const {
  static const Held<NoAttrs> none{NoAttrs{}};
  return held_ != nullptr ? *held_ : none;
}

const std::type_info& Attrs::type() const {
  return held().type();
}

bool Attrs::operator==(const Attrs& other) const {
  return type() == other.type() && held().equals(other.held());
}

const void* Attrs::find(const std::type_info& type) const {
  return held().type() == type ? held().value() : nullptr;
}

const void* Attrs::find_or_throw(const std::type_info& type) const {
  const void* found = find(type);
  require(found != nullptr, "Attrs: the op has attributes of another kind");
  return found;
}

std::string attrs_text(const Attrs& attrs) {
  return attrs.held().text();
}

}  // namespace penstock::ir
