#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "lower/count_ops.h"
#include "lower/lower.h"
#include "lower/step_runner.h"
#include "models/text_models.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

using ir::OpKind;

/// Convolutions in blocked layouts with odd channels, dropout of images and of vectors.
ir::Graph image_step(std::int64_t batch, const ir::SgdAttrs& attrs) {
  ClassifierBuilder b("images", {batch, 3, 9, 9});
  auto x = b.relu(b.conv("conv1", b.images(), 16, {.kernel = {3}, .stride = {2}}));
  x = b.dropout(b.conv("conv2", x, 21, {.kernel = {3}, .padding = {1}}), 0.25F);
  const ir::Graph network = b.finish(b.linear("fc", b.dropout(b.flatten(b.tanh(x)), 0.5F), 7));
  return training_step(lower::fuse(lower::for_training(network)), attrs);
}

/// Attention with dropout, an output layer that shares the embedding's weights, updates in slices of few
/// rows.
ir::Graph text_step(std::int64_t batch, const ir::SgdAttrs& attrs) {
  models::Gpt2Config config;
  config.layers = 2;
  config.heads = 2;
  config.width = 16;
  config.vocabulary = 40;
  config.positions = 8;
  const ir::Graph network = models::build_gpt2("text", config, {batch, 8, true});
  return lower::slice_updates(training_step(lower::fuse(lower::for_training(network)), attrs), 512);
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> state;
};

Outcome run_steps(kernels::Backend& backend, const ir::Graph& step, float clip_norm, int steps) {
  ir::verify(step);
  lower::LowerOptions options;
  options.clip_norm = clip_norm;
  const lower::Executable executable = lower::lower(step, backend, options);
  StepRunner runner(backend, executable);
  Outcome outcome;
  for (int i = 0; i < steps; ++i) outcome.losses.push_back(runner.run());
  outcome.state = runner.state();
  return outcome;
}

void expect_near(const Outcome& have, const Outcome& want, double tolerance) {
  ASSERT_EQ(have.state.size(), want.state.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(have.losses[i], want.losses[i], tolerance * want.losses[i]);
  for (const auto& [name, values] : want.state) {
    const auto& other = have.state.at(name);
    ASSERT_EQ(other.size(), values.size()) << name;
    double largest = 1e-3, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      apart = std::max(apart, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
    EXPECT_LT(apart, tolerance * largest) << name;
  }
}

TEST(Accumulate, MicroBatchesTrainAsTheWholeBatchWithinRounding) {
  const ir::SgdAttrs attrs{.momentum = 0.9F, .weight_decay = 1e-3F};
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    for (const auto make : {image_step, text_step}) {
      const Outcome whole = run_steps(*backend, make(6, attrs), 0, 3);
      for (const std::int64_t parts : {2, 3, 6}) {
        SCOPED_TRACE(parts);
        const ir::Graph step = lower::accumulate(make(6 / parts, attrs), parts);
        expect_near(run_steps(*backend, step, 0, 3), whole, 2e-4);
      }
    }
  }
}

TEST(Accumulate, StateIsTouchedOnceAndGradientsAreAddedInOrder) {
  const ir::Graph one = text_step(2, {.momentum = 0.9F});
  const ir::Graph three = lower::accumulate(one, 3);
  EXPECT_EQ(count(three, OpKind::sgd_update), count(one, OpKind::sgd_update));
  EXPECT_EQ(count(three, OpKind::attention), 3 * count(one, OpKind::attention));
  EXPECT_EQ(count(three, OpKind::input), 2);
  for (const ir::Op& op : three.ops) {
    if (op.kind != OpKind::sgd_update) continue;
    const ir::Op& last = three.op(three.tensor(op.inputs[1]).producer);
    ASSERT_EQ(last.kind, OpKind::add);
    const ir::Op& before = three.op(three.tensor(last.inputs[0]).producer);
    EXPECT_EQ(before.kind, OpKind::add) << "(1 + 2) + 3";
  }
  EXPECT_EQ(print(lower::accumulate(one, 1)), print(one));
}

TEST(Accumulate, RunningStatisticsTakeEachMicroBatchInTurn) {
  constexpr std::int64_t kCount = 3, kSamples = 4, kChannels = 2, kPixels = 9;
  ClassifierBuilder b("statistics", {kSamples, kChannels, 3, 3});
  const ir::Graph network = b.finish(b.linear("fc", b.flatten(b.batch_norm("bn", b.images())), 3));
  const ir::Graph step =
      lower::accumulate(lower::repeat_cheap(training_step(lower::for_training(network), {})), kCount);
  const auto backend = kernels::make_reference_backend();
  const Outcome outcome = run_steps(*backend, step, 0, 1);
  const CounterRandom random(5, RandomPurpose::synthetic, 0, 0);  // as StepRunner feeds
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    double running = 0;
    for (std::int64_t micro = 0; micro < kCount; ++micro) {
      double mean = 0;
      for (std::int64_t n = micro * kSamples; n < (micro + 1) * kSamples; ++n) {
        for (std::int64_t i = 0; i < kPixels; ++i)
          mean += random.normal(static_cast<std::uint64_t>((n * kChannels + channel) * kPixels + i));
      }
      running = 0.9 * running + 0.1 * mean / (kSamples * kPixels);
    }
    EXPECT_NEAR(outcome.state.at("bn.running_mean")[static_cast<std::size_t>(channel)], running, 1e-5);
  }
}

TEST(Accumulate, SlicesOfTheBatchWithinMicroBatches) {
  const auto backend = kernels::make_cpu_backend();
  const ir::SgdAttrs attrs{.momentum = 0.9F};
  const Outcome whole = run_steps(*backend, image_step(8, attrs), 0, 2);
  const ir::Graph step =
      lower::accumulate(lower::cut_batch(image_step(4, attrs), {2, lower::CutInputs::whole}), 2);
  expect_near(run_steps(*backend, step, 0, 2), whole, 2e-4);
}

/// Of the parameters.
double norm_of_change(const Outcome& after, const Outcome& before) {
  double squares = 0;
  for (const auto& [name, values] : after.state) {
    if (name.find(".momentum") != std::string::npos) continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double change = static_cast<double>(values[i]) - before.state.at(name)[i];
      squares += change * change;
    }
  }
  return std::sqrt(squares);
}

/// The learning rate of StepRunner.
constexpr double kRate = 0.05;

TEST(Clip, OneFactorForAllGradientsMakesTheirNormWhatWasAskedFor) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    for (const auto make : {image_step, text_step}) {
      for (const std::int64_t parts : {1, 3}) {
        const ir::Graph step = lower::accumulate(make(6 / parts, {}), parts);
        const Outcome start = run_steps(*backend, step, 0, 0);
        const Outcome plain = run_steps(*backend, step, 0, 1);
        const double norm = norm_of_change(plain, start) / kRate;
        EXPECT_GT(norm, 0.1);
        const Outcome clipped = run_steps(*backend, step, static_cast<float>(0.25 * norm), 1);
        EXPECT_NEAR(norm_of_change(clipped, start) / kRate, 0.25 * norm, 1e-3 * norm);
        for (const auto& [name, values] : start.state) {
          for (std::size_t i = 0; i < values.size(); ++i) {
            const float a = plain.state.at(name)[i] - values[i];
            const float b = clipped.state.at(name)[i] - values[i];
            ASSERT_NEAR(b, 0.25F * a, 1e-5F + 1e-3F * std::abs(a)) << name << " " << i;
          }
        }
      }
    }
  }
}

TEST(Clip, GradientsBelowTheNormAreAsTheyWere) {
  const auto backend = kernels::make_cpu_backend();
  const ir::Graph step = text_step(2, {.momentum = 0.9F});
  EXPECT_EQ(run_steps(*backend, step, 1e9F, 3).state, run_steps(*backend, step, 0, 3).state);
}

TEST(Clip, UpdatesWaitForTheNormAndBeginWithWhatWasMadeLast) {
  const auto backend = kernels::make_cpu_backend();
  lower::LowerOptions options;
  options.clip_norm = 1;
  const ir::Graph plain = lower::lower(text_step(2, {}), *backend).graph;
  const ir::Graph graph = lower::lower(text_step(2, {}), *backend, options).graph;
  std::vector<std::string> before, behind;
  for (const ir::Op& op : plain.ops) {
    if (op.kind == OpKind::sgd_update) before.push_back(op.name);
  }
  bool known = false;
  for (const ir::Op& op : graph.ops) {
    if (op.kind == OpKind::clip_scale) known = true;
    if (op.kind != OpKind::sgd_update) continue;
    EXPECT_TRUE(known) << op.name.text();
    behind.push_back(op.name);
  }
  EXPECT_EQ(behind, (std::vector<std::string>(before.rbegin(), before.rend())));
  EXPECT_EQ(count(graph, OpKind::sum_squares), static_cast<int>(before.size()));
}

}  // namespace
}  // namespace penstock::testing
