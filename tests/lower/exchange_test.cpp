#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/lower.h"
#include "lower/step_runner.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using Builder = ClassifierBuilder;

/// Convolutions in blocked layouts with odd channels, small vectors, one large matrix.
ir::Graph step() {
  Builder b("exchange", {4, 3, 12, 12});
  auto x = b.relu(b.batch_norm("bn1", b.conv("conv1", b.images(), 16, {.kernel = {3}, .bias = false})));
  x = b.relu(b.conv("conv2", x, 21, {.kernel = {3}, .padding = {1}}));
  return training_step(
      lower::for_training(b.finish(b.linear("fc", b.relu(b.linear("hidden", b.flatten(x), 30)), 7))),
      {0.9F, 0.01F});
}

lower::Executable lowered(kernels::Backend& backend, const lower::ExchangeOptions& exchange) {
  lower::LowerOptions options;
  options.exchange = exchange;
  return lower::lower(step(), backend, options);
}

/// All ranks have the same gradients, so the mean is what each has.
class Twins : public kernels::Exchanger {
 public:
  void start(const ir::ExchangeAttrs& exchange, float* values, std::int64_t count) override {
    EXPECT_TRUE(open_.emplace(exchange.bucket, std::vector<float>(values, values + count)).second);
    places_[exchange.bucket] = values;
    // Nobody may look at it now.
    std::fill_n(values, count, -1e30F);
  }
  void wait(const ir::ExchangeAttrs& exchange) override {
    const auto found = open_.find(exchange.bucket);
    ASSERT_NE(found, open_.end());
    std::copy(found->second.begin(), found->second.end(), places_[exchange.bucket]);
    open_.erase(found);
  }
  bool all_done() const { return open_.empty(); }

 private:
  std::map<std::int32_t, std::vector<float>> open_;
  std::map<std::int32_t, float*> places_;
};

std::vector<lower::ExchangeOptions> many_sizes() {
  std::vector<lower::ExchangeOptions> list;
  for (const std::int64_t bucket : {std::int64_t{1}, std::int64_t{2000}, std::int64_t{8} << 20}) {
    for (const std::int64_t in_flight : {std::int64_t{0}, std::int64_t{5000}, std::int64_t{32} << 20}) {
      list.push_back({1, 2, bucket, in_flight, false});
    }
  }
  return list;
}

TEST(Exchange, RanksThatAgreeLearnWhatOneLearns) {
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable alone = lowered(*backend, {});
  StepRunner one(*backend, alone);
  for (int i = 0; i < 3; ++i) one.run();
  for (const lower::ExchangeOptions& options : many_sizes()) {
    const lower::Executable executable = lowered(*backend, options);
    StepRunner rank(*backend, executable);
    Twins twins;
    rank.set_exchanger(&twins);
    for (int i = 0; i < 3; ++i) rank.run();
    EXPECT_TRUE(twins.all_done());
    EXPECT_EQ(rank.state(), one.state()) << options.bucket_bytes << " " << options.in_flight_bytes;
  }
}

TEST(Exchange, EachUpdateWaitsForItsOwnBucketOnly) {
  const auto backend = kernels::make_cpu_backend();
  for (const lower::ExchangeOptions& options : many_sizes()) {
    const ir::Graph graph = lowered(*backend, options).graph;
    std::set<std::int32_t> on_the_way;
    std::int64_t in_flight_bytes = 0;
    int updates = 0;
    for (const ir::Op& op : graph.ops) {
      if (op.kind == OpKind::reduce_start) {
        const ir::Tensor& bucket = graph.tensor(op.outputs[0]);
        EXPECT_TRUE(bucket.pinned);
        EXPECT_TRUE(op.inputs.size() == 1 || bucket.size_bytes() <= options.bucket_bytes);
        // A gradient that travels alone is not copied.
        EXPECT_TRUE(op.inputs.size() > 1 || graph.tensor(op.inputs[0]).storage == bucket.storage);
        in_flight_bytes += bucket.size_bytes();
        EXPECT_TRUE(on_the_way.empty() || in_flight_bytes <= options.in_flight_bytes);
        on_the_way.insert(op.attrs_as<ir::ExchangeAttrs>().bucket);
      } else if (op.kind == OpKind::reduce_wait) {
        EXPECT_EQ(on_the_way.erase(op.attrs_as<ir::ExchangeAttrs>().bucket), 1U);
        in_flight_bytes -= graph.tensor(op.inputs[0]).size_bytes();
      } else if (op.kind == OpKind::sgd_update) {
        EXPECT_EQ(graph.op(graph.tensor(op.inputs[1]).producer).kind, OpKind::reduce_wait);
        ++updates;
      }
    }
    EXPECT_TRUE(on_the_way.empty());
    EXPECT_EQ(updates, 9);
  }
}

TEST(Exchange, ShardsOfAllRanksMakeTheWholeState) {
  const auto backend = kernels::make_cpu_backend();
  const auto state_bytes = [](const ir::Graph& graph) {
    std::int64_t bytes = 0;
    for (const ir::Carried& state : graph.carried) {
      const ir::Tensor& tensor = graph.tensor(state.begin);
      if (tensor.role == ir::Role::optimizer_state) bytes += tensor.size_bytes();
    }
    return bytes;
  };
  const std::int64_t whole_bytes = state_bytes(lowered(*backend, {}).graph);
  for (const int ranks : {2, 3, 7}) {
    for (const std::int64_t bucket : {std::int64_t{2000}, std::int64_t{8} << 20}) {
      std::int64_t sum_bytes = 0, most_bytes = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const lower::Executable executable = lowered(*backend, {rank, ranks, bucket, 5000, true});
        EXPECT_EQ(executable.sharded.size(), 9U);
        for (const lower::ShardedState& shard : executable.sharded) {
          EXPECT_EQ(shard.bounds.size(), static_cast<std::size_t>(ranks) + 1);
          EXPECT_TRUE(std::is_sorted(shard.bounds.begin(), shard.bounds.end()));
          EXPECT_EQ(shard.bounds.front(), 0);
        }
        sum_bytes += state_bytes(executable.graph);
        most_bytes = std::max(most_bytes, state_bytes(executable.graph));
      }
      EXPECT_EQ(sum_bytes, whole_bytes);
      EXPECT_LT(most_bytes, whole_bytes / ranks + 4096);
    }
  }
}

/// A slice of a weight is updated while others of it are still gathered.
TEST(Exchange, AWeightThatIsUpdatedInSlicesCanBeSharded) {
  const auto backend = kernels::make_cpu_backend();
  for (lower::ExchangeOptions exchange : many_sizes()) {
    exchange.shard_optimizer = true;
    lower::LowerOptions options;
    options.exchange = exchange;
    const ir::Graph sliced = lower::slice_updates(step(), 16 << 10);
    EXPECT_GT(sliced.ops.size(), step().ops.size());
    EXPECT_NO_THROW(ir::verify(lower::lower(sliced, *backend, options).graph));
  }
}

}  // namespace
}  // namespace penstock::testing
