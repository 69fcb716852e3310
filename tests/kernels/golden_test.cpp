#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "kernels/case_graph.h"
#include "kernels/kernel.h"
#include "kernels/op_cases.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

using nlohmann::json;

/// Attributes by the names of their members, for the script that asks PyTorch.
struct ToJson {
  json operator()(const ir::NoAttrs& /*attrs*/) const { return json::object(); }
  json operator()(const ir::ConvAttrs& a) const {
    return {{"stride", a.stride},
            {"dilation", a.dilation},
            {"padding_begin", a.padding_begin},
            {"padding_end", a.padding_end},
            {"output_padding", a.output_padding},
            {"groups", a.groups},
            {"relu", a.relu}};
  }
  json operator()(const ir::LinearAttrs& a) const {
    return {{"relu", a.relu}, {"turned", a.turned}, {"begin", a.begin}};
  }
  json operator()(const ir::MatmulAttrs& a) const {
    return {{"transpose_a", a.transpose_a}, {"transpose_b", a.transpose_b}, {"scale", a.scale}};
  }
  json operator()(const ir::NormAttrs& a) const {
    return {
        {"epsilon", a.epsilon}, {"relu", a.relu}, {"add", a.add}, {"ceiling", a.ceiling}, {"silu", a.silu}};
  }
  json operator()(const ir::StatisticsAttrs& a) const {
    return {{"momentum", a.momentum}, {"count", a.count}};
  }
  json operator()(const ir::ActivationAttrs& a) const {
    return {{"function", ir::activation_name(a.function)}, {"alpha", a.alpha}};
  }
  json operator()(const ir::PoolAttrs& a) const {
    return {{"kernel", a.kernel},
            {"stride", a.stride},
            {"padding_begin", a.padding_begin},
            {"padding_end", a.padding_end},
            {"count_include_pad", a.count_include_pad}};
  }
  json operator()(const ir::LrnAttrs& a) const {
    return {{"size", a.size}, {"alpha", a.alpha}, {"beta", a.beta}, {"k", a.k}};
  }
  json operator()(const ir::DropoutAttrs& a) const { return {{"probability", a.probability}}; }
  json operator()(const ir::AxisAttrs& a) const { return {{"axis", a.axis}}; }
  json operator()(const ir::PadAttrs& a) const {
    return {{"begin", a.begin}, {"end", a.end}, {"value", a.value}};
  }
  json operator()(const ir::UpsampleAttrs& a) const {
    return {{"factor", a.factor}, {"bilinear", a.bilinear}};
  }
  json operator()(const ir::MeanAttrs& a) const { return {{"count", a.count}}; }
  json operator()(const ir::PortAttrs& a) const { return {{"port", a.port}}; }
  json operator()(const ir::TransposeAttrs& a) const { return {{"order", a.order}}; }
  json operator()(const ir::SgdAttrs& a) const {
    return {{"momentum", a.momentum},
            {"weight_decay", a.weight_decay},
            {"nesterov", a.nesterov},
            {"gradient_scale", a.gradient_scale},
            {"clipped", a.clipped}};
  }
  json operator()(const ir::AdamAttrs& a) const {
    return {{"beta1", a.beta1},         {"beta2", a.beta2},
            {"epsilon", a.epsilon},     {"weight_decay", a.weight_decay},
            {"decoupled", a.decoupled}, {"gradient_scale", a.gradient_scale},
            {"clipped", a.clipped}};
  }
  json operator()(const ir::AttentionAttrs& a) const {
    return {{"layout", static_cast<int>(a.layout)},
            {"heads", a.heads},
            {"kv_heads", a.kv_heads},
            {"causal", a.causal},
            {"scale", a.scale},
            {"dropout", a.dropout}};
  }
  json operator()(const ir::LayerNormAttrs& a) const {
    return {{"epsilon", a.epsilon}, {"rms", a.rms}, {"add", a.add}};
  }
  json operator()(const ir::EmbeddingAttrs& a) const { return {{"begin", a.begin}}; }
  json operator()(const ir::RotaryAttrs& a) const {
    return {{"head_width", a.head_width},
            {"rotated", a.rotated},
            {"base", a.base},
            {"interleaved", a.interleaved},
            {"factor", a.factor},
            {"low_turns", a.low_turns},
            {"high_turns", a.high_turns},
            {"original_length", a.original_length}};
  }
  json operator()(const ir::GateAttrs& a) const { return {{"function", ir::gate_name(a.function)}}; }
  json operator()(const ir::OutputLossAttrs& a) const {
    return {{"smoothing", a.smoothing}, {"begin", a.begin}};
  }
  json operator()(const ir::ClipAttrs& a) const { return {{"norm", a.norm}, {"weight", a.weight}}; }
};

/// The first of Types that the attributes are.
template <typename First, typename... Types>
json to_json(const ir::Attrs& attrs) {
  if (const auto* held = attrs.get_if<First>()) return ToJson{}(*held);
  if constexpr (sizeof...(Types) > 0) {
    return to_json<Types...>(attrs);
  } else {
    throw InternalError("to_json: attributes of a struct that is not listed");
  }
}

json attrs_json(const ir::Attrs& attrs) {
  return to_json<ir::NoAttrs, ir::ConvAttrs, ir::LinearAttrs, ir::MatmulAttrs, ir::NormAttrs,
                 ir::StatisticsAttrs, ir::ActivationAttrs, ir::PoolAttrs, ir::LrnAttrs, ir::DropoutAttrs,
                 ir::AxisAttrs, ir::PadAttrs, ir::UpsampleAttrs, ir::TransposeAttrs, ir::SgdAttrs,
                 ir::AdamAttrs, ir::AttentionAttrs, ir::LayerNormAttrs, ir::EmbeddingAttrs, ir::RotaryAttrs,
                 ir::GateAttrs, ir::OutputLossAttrs, ir::ClipAttrs, ir::MeanAttrs, ir::PortAttrs>(attrs);
}

json describe(const OpCase& op_case) {
  const CaseGraph built = make_case_graph(op_case, true);
  json result{{"name", op_case.name},
              {"kind", ir::op_name(op_case.kind)},
              {"attrs", attrs_json(op_case.attrs)},
              {"inputs", json::array()},
              {"seeds", json::array()},
              {"seeded", json::array()},
              {"output_shapes", json::array()}};
  for (const ir::TensorId id : built.inputs) {
    const auto gradient = built.gradients.find(id);
    result["inputs"].push_back(
        {{"shape", built.graph.tensor(id).shape.dims()},
         {"values", built.values.at(id)},
         {"gradient", gradient == built.gradients.end() ? "" : built.graph.tensor(gradient->second).name}});
  }
  for (const autodiff::Seed& seed : built.seeds) {
    result["seeds"].push_back(built.values.at(seed.gradient));
    result["seeded"].push_back(built.graph.tensor(seed.tensor).name);
  }
  for (const ir::Shape& shape : op_case.outputs) result["output_shapes"].push_back(shape.dims());
  return result;
}

bool drops_attention(const OpCase& op_case) {
  const auto* attention = op_case.attrs.get_if<ir::AttentionAttrs>();
  return attention != nullptr && attention->dropout > 0;
}

/// Not a test: writes what tests/golden/make_op_golden.py reads.
TEST(OpGolden, DISABLED_WriteCases) {
  json cases = json::array();
  for (const OpCase& op_case : op_cases()) {
    if (op_case.in_pytorch) cases.push_back(describe(op_case));
  }
  std::ofstream(PENSTOCK_BINARY_DIR "/op_cases.json") << cases;
}

TEST(OpGolden, ReferenceAgreesWithPyTorch) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/tests/golden/ops.json");
  ASSERT_TRUE(file);
  const json golden = json::parse(file);
  const auto backend = kernels::make_reference_backend();
  for (const OpCase& op_case : op_cases()) {
    const bool unknown_to_pytorch =
        op_case.kind == ir::OpKind::input || op_case.kind == ir::OpKind::reorder ||
        op_case.kind == ir::OpKind::dropout || drops_attention(op_case) || !op_case.in_pytorch;
    ASSERT_EQ(golden.contains(op_case.name), !unknown_to_pytorch) << op_case.name;
    if (unknown_to_pytorch) continue;
    std::size_t compared = 0;
    for (const CaseOutput& output : run_case(*backend, op_case)) {
      const auto want = golden[op_case.name].find(output.tensor);
      if (want == golden[op_case.name].end()) continue;
      double projection = 0;
      for (std::size_t i = 0; i < output.values.size(); ++i) {
        projection += output.values[i] * std::cos(static_cast<double>(i + 1));
      }
      const double magnitude = (*want)[1];
      EXPECT_NEAR(projection, (*want)[0].get<double>(), 1e-6 * magnitude)
          << op_case.name << " " << output.tensor;
      ++compared;
    }
    EXPECT_GT(compared, 0U) << op_case.name;
  }
}

}  // namespace
}  // namespace penstock::testing
