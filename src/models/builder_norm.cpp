#include <fmt/format.h>

#include "models/builder.h"

namespace penstock::models {

namespace {

constexpr ir::Init kOnes{ir::Init::Kind::constant, 1};
constexpr ir::Init kZeros{ir::Init::Kind::constant, 0};

}  // namespace

Value Builder::batch_norm(const std::string& name, Value x, float epsilon, float momentum) {
  const std::string layer = layer_name(name, x, "batch_norm");
  const ir::Shape in = shape(x);
  if (in.rank() < 2) {
    throw UserError(fmt::format("layer {} needs an input [N, C, ...], not {}", layer, in.to_string()));
  }
  const ir::Shape per_channel{in[1]};
  const Value gamma = parameter(layer + ".weight", per_channel, kOnes);
  const Value beta = parameter(layer + ".bias", per_channel, kZeros);
  const Value running_mean =
      graph_.add_state(layer + ".running_mean", per_channel, ir::Role::statistic, kZeros);
  const Value running_var = graph_.add_state(layer + ".running_var", per_channel, ir::Role::statistic, kOnes);
  ir::NormAttrs attrs;
  attrs.epsilon = epsilon;
  const std::int64_t count = in.elements() / in[1];
  const Value mean = add_output(layer + ".mean", ir::DType::f32, per_channel, ir::Role::activation);
  const Value variance = add_output(layer + ".variance", ir::DType::f32, per_channel, ir::Role::activation);
  graph_.add_op({ir::OpKind::batch_norm_statistics,
                 ir::Phase::forward,
                 layer + ".statistics",
                 {x},
                 {mean, variance},
                 attrs});
  const Value y = make(ir::OpKind::batch_norm, layer, {x, gamma, beta, mean, variance}, attrs);
  const Value next_mean = graph_.add_successor(running_mean, layer + ".running_mean'");
  const Value next_var = graph_.add_successor(running_var, layer + ".running_var'");
  graph_.add_op({ir::OpKind::statistics_update,
                 ir::Phase::update,
                 layer + ".update",
                 {running_mean, running_var, mean, variance},
                 {next_mean, next_var},
                 ir::StatisticsAttrs{momentum, count}});
  graph_.replace_carried(running_mean, next_mean);
  graph_.replace_carried(running_var, next_var);
  return y;
}

Value Builder::layer_norm(const std::string& name, Value x, float epsilon) {
  const std::string layer = layer_name(name, x, "layer_norm");
  const ir::Shape in = shape(x);
  if (in.rank() < 2)
    throw UserError(fmt::format("layer {} needs an input [N, ..., D], not {}", layer, in.to_string()));
  const std::int64_t features = in[in.rank() - 1];
  const Value gamma = parameter(layer + ".weight", {features}, kOnes);
  const Value beta = parameter(layer + ".bias", {features}, kZeros);
  const ir::Shape rows{in.elements() / features};
  const Value y = add_output(layer, ir::DType::f32, in, ir::Role::activation);
  const Value mean = add_output(layer + ".mean", ir::DType::f32, rows, ir::Role::activation);
  const Value variance = add_output(layer + ".variance", ir::DType::f32, rows, ir::Role::activation);
  ir::LayerNormAttrs attrs;
  attrs.epsilon = epsilon;
  graph_.add_op(
      {ir::OpKind::layer_norm, ir::Phase::forward, layer, {x, gamma, beta}, {y, mean, variance}, attrs});
  return y;
}

Value Builder::lrn(Value x, const ir::LrnAttrs& attrs, const std::string& name) {
  return make(ir::OpKind::lrn, layer_name(name, x, "lrn"), {x}, attrs);
}

}  // namespace penstock::models
