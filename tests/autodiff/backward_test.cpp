#include "autodiff/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "ir/functions.h"
#include "ir/infer.h"
#include "kernels/case_graph.h"
#include "kernels/run_case.h"

namespace penstock::autodiff {
namespace {

using ir::OpKind;
using ir::TensorId;
using ::testing::ElementsAre;

/// Builds small graphs; state is filled with small random numbers.
class Net {
 public:
  TensorId state(const std::string& name, ir::Shape shape, ir::Role role) {
    const TensorId id = graph().add_state(name, shape, role, {});
    const CounterRandom random(3, RandomPurpose::initialise, 0, static_cast<std::uint32_t>(id));
    auto& values = built_.values[id];
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(0.5F * random.normal(static_cast<std::uint64_t>(i)));
    return id;
  }
  TensorId parameter(const std::string& name, ir::Shape shape) {
    return state(name, std::move(shape), ir::Role::parameter);
  }
  TensorId input(const std::string& name, ir::Shape shape) {
    return state(name, std::move(shape), ir::Role::buffer);
  }
  TensorId labels(const std::string& name, std::vector<float> values) {
    const TensorId id =
        graph().add_state(name, {static_cast<std::int64_t>(values.size())}, ir::Role::buffer, {});
    graph().tensor(id).dtype = ir::DType::s32;
    built_.values[id] = std::move(values);
    return id;
  }
  TensorId op(OpKind kind, const std::string& name, const std::vector<TensorId>& inputs,
              const ir::Attrs& attrs = {}) {
    return ops(kind, name, inputs, attrs)[0];
  }
  std::vector<TensorId> ops(OpKind kind, const std::string& name, const std::vector<TensorId>& inputs,
                            const ir::Attrs& attrs = {}) {
    std::vector<ir::Shape> shapes;
    for (const TensorId id : inputs) shapes.push_back(graph().tensor(id).shape);
    const ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
    require(inferred.problem.empty(), inferred.problem.c_str());
    std::vector<TensorId> outputs;
    for (const ir::Shape& shape : inferred.shapes) {
      outputs.push_back(graph().add_tensor(outputs.empty() ? name : name + std::to_string(outputs.size()),
                                           ir::DType::f32, shape, ir::Role::activation));
    }
    graph().add_op({kind, ir::Phase::forward, name, inputs, outputs, attrs});
    return outputs;
  }
  TensorId loss(TensorId logits, TensorId labels) {
    graph().loss = op(OpKind::cross_entropy, "loss", {logits, labels}, ir::MeanAttrs{});
    return graph().loss;
  }
  void backward() {
    append_backward(graph(), graph().loss, [&](ir::Graph& g, TensorId parameter, TensorId gradient) {
      order_.push_back(g.tensor(parameter).name);
      built_.gradients[parameter] = gradient;
      sgd(parameter, gradient);
    });
    ir::verify(graph());
  }
  std::vector<OpKind> kinds(ir::Phase phase) {
    std::vector<OpKind> result;
    for (const ir::Op& op : graph().ops) {
      if (op.phase == phase) result.push_back(op.kind);
    }
    return result;
  }
  std::map<std::string, std::vector<float>> run() {
    const auto backend = kernels::make_reference_backend();
    std::map<std::string, std::vector<float>> result;
    for (const auto& output : testing::run_graph(*backend, built_)) result[output.tensor] = output.values;
    return result;
  }

  ir::Graph& graph() { return built_.graph; }
  testing::CaseGraph& built() { return built_; }
  const std::vector<std::string>& order() const { return order_; }
  std::string gradient_name(TensorId parameter) {
    return graph().tensor(built_.gradients.at(parameter)).name;
  }

 private:
  void sgd(TensorId parameter, TensorId gradient) {
    const TensorId next = graph().add_successor(parameter, graph().tensor(parameter).name + ".next");
    graph().add_op(
        {OpKind::sgd_update, ir::Phase::update, "sgd", {parameter, gradient}, {next}, ir::SgdAttrs{}});
    graph().replace_carried(parameter, next);
  }

  testing::CaseGraph built_;
  std::vector<std::string> order_;
};

/// d loss / d parameter by finite differences against the gradient in the graph.
void expect_right_gradient(Net& net, TensorId parameter) {
  const auto analytic = net.run().at(net.gradient_name(parameter));
  auto& values = net.built().values.at(parameter);
  ASSERT_EQ(values.size(), analytic.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float old = values[i];
    values[i] = old + 0.01F;
    const double above = net.run().at("loss")[0];
    values[i] = old - 0.01F;
    const double below = net.run().at("loss")[0];
    values[i] = old;
    EXPECT_NEAR((above - below) / 0.02, analytic[i], 1e-3) << i;
  }
}

TEST(Backward, SumsTheGradientsOfATensorWithSeveralUses) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId t = net.op(OpKind::activation, "t", {h}, ir::ActivationAttrs{ir::Activation::tanh});
  const TensorId product = net.op(OpKind::multiply, "product", {h, t}, ir::NoAttrs{});
  const TensorId sum = net.op(OpKind::add, "sum", {product, h}, ir::NoAttrs{});
  net.loss(sum, net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  EXPECT_EQ(net.gradient_name(w), "w.grad");
  EXPECT_THAT(net.kinds(ir::Phase::backward),
              ElementsAre(OpKind::cross_entropy_backward, OpKind::multiply, OpKind::add, OpKind::multiply,
                          OpKind::activation_backward, OpKind::add, OpKind::linear_backward_weights));
  expect_right_gradient(net, w);
}

TEST(Backward, BeginsAtAnyScalar) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId bent =
      net.op(OpKind::pointwise, "bent", {h}, ir::PointwiseAttrs{ir::named_function("silu")});
  net.graph().loss = net.op(OpKind::reduce, "loss", {bent}, ir::ReduceAttrs{ir::Reduction::mean, {0, 1}});
  net.backward();
  expect_right_gradient(net, w);
}

TEST(Backward, ACrossEntropyMayBeAPartOfTheLoss) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId entropy =
      net.op(OpKind::cross_entropy, "entropy", {h, net.labels("labels", {0, 1, 2, 1})}, ir::MeanAttrs{});
  const TensorId size =
      net.op(OpKind::reduce, "size",
             {net.op(OpKind::pointwise, "square", {h}, ir::PointwiseAttrs{ir::named_function("square")})},
             ir::ReduceAttrs{ir::Reduction::mean, {0, 1}});
  const TensorId part = net.op(OpKind::pointwise, "part", {entropy},
                               ir::PointwiseAttrs{ir::named_function("mul_scalar", {0.3F})});
  net.graph().loss =
      net.op(OpKind::pointwise, "loss", {part, size}, ir::PointwiseAttrs{ir::named_function("add")});
  net.backward();
  expect_right_gradient(net, w);
}

TEST(Backward, WhatOnlyAStepReadsHasNoGradient) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId unused = net.parameter("unused", {3, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId stepped =
      net.op(OpKind::pointwise, "stepped", {net.op(OpKind::linear, "aside", {x, unused}, ir::LinearAttrs{})},
             ir::PointwiseAttrs{ir::named_function("floor")});
  const TensorId sum =
      net.op(OpKind::pointwise, "sum", {h, stepped}, ir::PointwiseAttrs{ir::named_function("add")});
  net.loss(sum, net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  EXPECT_THAT(net.order(), ElementsAre("w"));
}

TEST(Backward, UpdatesASharedParameterOnceAfterItsLastUse) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId b = net.parameter("b", {3});
  const TensorId first = net.op(OpKind::linear, "first", {x, w, b}, ir::LinearAttrs{});
  const TensorId bend =
      net.op(OpKind::activation, "bend", {first}, ir::ActivationAttrs{ir::Activation::sigmoid});
  const TensorId second = net.op(OpKind::linear, "second", {bend, w}, ir::LinearAttrs{});
  net.loss(second, net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  EXPECT_THAT(net.order(), ElementsAre("w", "b"));
  EXPECT_THAT(net.kinds(ir::Phase::update), ElementsAre(OpKind::sgd_update, OpKind::sgd_update));
  expect_right_gradient(net, w);
  expect_right_gradient(net, b);
}

TEST(Backward, ReportsEachParameterAsSoonAsNothingReadsIt) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w0 = net.parameter("w0", {5, 3});
  const TensorId w1 = net.parameter("w1", {3, 5});
  const TensorId hidden = net.op(OpKind::linear, "hidden", {x, w0}, ir::LinearAttrs{});
  net.loss(net.op(OpKind::linear, "logits", {hidden, w1}, ir::LinearAttrs{}),
           net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  EXPECT_THAT(net.order(), ElementsAre("w1", "w0"));
  std::vector<OpKind> tail;
  for (std::size_t i = 3; i < net.graph().ops.size(); ++i) tail.push_back(net.graph().ops[i].kind);
  // The images need no gradient: the first layer has no backward_data.
  EXPECT_THAT(tail, ElementsAre(OpKind::cross_entropy_backward, OpKind::linear_backward_weights,
                                OpKind::linear_backward_data, OpKind::sgd_update,
                                OpKind::linear_backward_weights, OpKind::sgd_update));
}

TEST(Backward, ComputesNothingThatNoParameterNeeds) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {3, 3});
  const TensorId unused = net.parameter("unused", {3, 3});
  const TensorId bent = net.op(OpKind::activation, "bent", {x}, ir::ActivationAttrs{ir::Activation::tanh});
  net.op(OpKind::linear, "aside", {bent, unused}, ir::LinearAttrs{});
  net.loss(net.op(OpKind::linear, "logits", {bent, w}, ir::LinearAttrs{}),
           net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  EXPECT_THAT(net.order(), ElementsAre("w"));
  EXPECT_THAT(net.kinds(ir::Phase::backward),
              ElementsAre(OpKind::cross_entropy_backward, OpKind::linear_backward_weights));
}

TEST(Backward, GivesPartsOfASplitThatLeadNowhereTheGradientZero) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {5, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId left = net.graph().add_tensor("left", ir::DType::f32, {4, 3}, ir::Role::activation);
  const TensorId right = net.graph().add_tensor("right", ir::DType::f32, {4, 2}, ir::Role::activation);
  net.graph().add_op({OpKind::split, ir::Phase::forward, "split", {h}, {left, right}, ir::AxisAttrs{1}});
  net.loss(left, net.labels("labels", {0, 1, 2, 1}));
  net.backward();
  expect_right_gradient(net, w);
}

TEST(Backward, TakesAConcatOfOneTensorTwiceApart) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId w = net.parameter("w", {2, 3});
  const TensorId h = net.op(OpKind::linear, "h", {x, w}, ir::LinearAttrs{});
  const TensorId twice = net.op(OpKind::concat, "twice", {h, h}, ir::AxisAttrs{1});
  net.loss(twice, net.labels("labels", {0, 1, 2, 3}));
  net.backward();
  expect_right_gradient(net, w);
}

TEST(Backward, RefusesBatchNormWithRunningStatisticsAndALossThatIsNoCrossEntropy) {
  Net net;
  const TensorId x = net.input("x", {4, 3});
  const TensorId gamma = net.parameter("gamma", {3});
  const TensorId beta = net.parameter("beta", {3});
  const TensorId mean = net.input("mean", {3});
  const TensorId variance = net.input("variance", {3});
  const TensorId y = net.op(OpKind::batch_norm, "y", {x, gamma, beta, mean, variance}, ir::NormAttrs{});
  EXPECT_THROW(append_backward(net.graph(), y, {}), InternalError);
  net.loss(y, net.labels("labels", {0, 1, 2, 1}));
  EXPECT_THROW(net.backward(), InternalError);
}

TEST(Backward, TrainsASmallNetwork) {
  Net net;
  const TensorId x = net.input("x", {8, 4});
  const TensorId w0 = net.parameter("w0", {16, 4});
  const TensorId b0 = net.parameter("b0", {16});
  const TensorId w1 = net.parameter("w1", {3, 16});
  const TensorId hidden = net.op(OpKind::linear, "hidden", {x, w0, b0}, ir::LinearAttrs{true});
  net.loss(net.op(OpKind::linear, "logits", {hidden, w1}, ir::LinearAttrs{}),
           net.labels("labels", {0, 1, 2, 0, 1, 2, 0, 1}));
  net.backward();
  const double before = net.run().at("loss")[0];
  double after = before;
  for (int step = 0; step < 200; ++step) {
    const auto outputs = net.run();
    after = outputs.at("loss")[0];
    for (const TensorId parameter : {w0, b0, w1}) {
      net.built().values.at(parameter) = outputs.at(net.graph().tensor(parameter).name + ".next");
    }
  }
  EXPECT_GT(before, 0.5);
  EXPECT_LT(after, 0.2 * before);
}

}  // namespace
}  // namespace penstock::autodiff
