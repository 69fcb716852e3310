#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// ONNX keeps (momentum) of the old statistics where PyTorch takes (momentum) of the new ones.
constexpr float kUsualKept = 0.9F;

void batch_norm(Importer& at) {
  const Value gamma = at.value(1), beta = at.value(2);
  const Value mean = at.state(3, true), variance = at.state(4, true);
  at.set(0, at.net().batch_norm(at.value(0), gamma, beta, mean, variance, at.real("epsilon", 1e-5F),
                                1 - at.real("momentum", kUsualKept), at.layer()));
}

void layer_norm(Importer& at) {
  const std::size_t rank = at.shape(0).size();
  if (at.axis(at.integer("axis", -1), rank) != rank - 1)
    at.fail("normalises over several axes, which is not supported");
  if (!at.has(2)) at.fail("has no bias, which is not supported");
  at.set(0,
         at.net().layer_norm(at.value(0), at.value(1), at.value(2), at.real("epsilon", 1e-5F), at.layer()));
}

void rms_norm(Importer& at) {
  const std::size_t rank = at.shape(0).size();
  if (at.axis(at.integer("axis", -1), rank) != rank - 1)
    at.fail("normalises over several axes, which is not supported");
  at.set(0, at.net().rms_norm(at.value(0), at.value(1), at.real("epsilon", 1e-5F), at.layer()));
}

void lrn(Importer& at) {
  LrnOptions options;
  options.size = at.integer("size", 0);
  options.alpha = at.real("alpha", 1e-4F);
  options.beta = at.real("beta", 0.75F);
  options.k = at.real("bias", 1);
  if (options.size < 1) at.fail("has no size");
  at.set(0, at.net().lrn(at.value(0), options, at.layer()));
}

}  // namespace

const OpTable& norm_ops() {
  static const OpTable table{{"BatchNormalization", batch_norm},
                             {"LayerNormalization", layer_norm},
                             {"RMSNormalization", rms_norm},
                             {"LRN", lrn}};
  return table;
}

}  // namespace penstock::onnx
