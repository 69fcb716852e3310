#include "penstock/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "memory/process.h"
#include "memory/virtual_pool.h"
#include "models/network_graph.h"
#include "support/classifier_builder.h"
#include "support/run_program.h"

namespace penstock {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Network small_network(std::int64_t batch = 16) {
  testing::ClassifierBuilder b("small", {batch, 1, 8, 8});
  ConvOptions same;
  same.padding = {1};
  Value x = b.relu(b.batch_norm("norm", b.conv("conv", b.images(), 8, same)));
  return models::make_network(b.finish(b.linear("classifier", b.dropout(b.flatten(x), 0.2F), 4)));
}

struct Batch {
  explicit Batch(int seed = 0) : images(16 * 64), labels(16) {
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(seed) * 7) % 17) / 8.0F - 1.0F;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
  }
  Inputs inputs() const { return {{"images", images}, {"labels", labels}}; }
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

SessionOptions options() {
  SessionOptions options;
  options.threads = 1;
  options.seed = 5;
  return options;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Session, LearnsAndItsStateCanBeReadWrittenSavedAndLoaded) {
  const testing::TemporaryFolder folder;
  Session session(small_network(), Optimizer::adam(0.01), options());
  const Batch batch;
  const double first = session.step(batch.inputs()).loss;
  double last = first;
  for (int i = 0; i < 20; ++i) last = session.step(batch.inputs()).loss;
  EXPECT_LT(last, 0.7 * first);
  EXPECT_EQ(session.steps_done(), 21);

  std::map<std::string, StateInfo> state;
  for (const StateInfo& info : session.state()) state[info.name] = info;
  EXPECT_EQ(state.at("conv.weight").shape, (std::vector<std::int64_t>{8, 1, 3, 3}));
  EXPECT_EQ(state.at("conv.weight").kind, StateKind::parameter);
  EXPECT_EQ(state.at("norm.running_mean").kind, StateKind::statistic);
  EXPECT_EQ(state.at("conv.weight.exp_avg").kind, StateKind::optimizer);

  std::vector<float> weights;
  session.read("conv.weight",
               [&](std::span<const float> values) { weights.assign(values.begin(), values.end()); });
  EXPECT_EQ(weights.size(), 72U);
  session.save(folder.path() + "/weights.safetensors");
  session.save_checkpoint(folder.path() + "/checkpoint", {{"note", "mine"}});
  const std::string hash = session.state_sha256();
  session.write("conv.weight", std::vector<float>(72, 1.0F));
  EXPECT_NE(session.state_sha256(), hash);

  EXPECT_EQ(checkpoint_facts(folder.path() + "/checkpoint").facts.at("note"), "mine");
  Session other(small_network(), Optimizer::adam(0.01), options());
  other.load_checkpoint(folder.path() + "/checkpoint");
  EXPECT_EQ(other.state_sha256(), hash);
  EXPECT_EQ(other.steps_done(), 21);
  Session third(small_network(), Optimizer::sgd(0.1), options());
  third.load(folder.path() + "/weights.safetensors");
  third.read("conv.weight", [&](std::span<const float> values) {
    EXPECT_TRUE(std::equal(values.begin(), values.end(), weights.begin(), weights.end()));
  });
}

TEST(Session, RunComputesWithoutTrainingAndInputsMayBeLeftOut) {
  Session session(small_network(), Optimizer::sgd(0.1), options());
  const Batch batch;
  session.step(batch.inputs());
  const std::string hash = session.state_sha256();
  const StepResult whole = session.run(batch.inputs());
  EXPECT_GT(whole.loss, 0);
  EXPECT_EQ(whole.outputs.at("logits").shape, (std::vector<std::int64_t>{16, 4}));
  EXPECT_EQ(whole.outputs.at("correct").integers().size(), 1U);
  const StepResult part = session.run({{"images", batch.images}});
  EXPECT_EQ(part.outputs.at("logits").bytes, whole.outputs.at("logits").bytes);
  EXPECT_FALSE(part.outputs.contains("correct"));
  EXPECT_EQ(session.state_sha256(), hash);
}

/// The budget that a refusal advises gives the bits of training in memory, by each policy in both pools.
void expect_same_bits(const std::function<std::string(const SessionOptions&)>& train,
                      const std::vector<Policy>& policies) {
  const std::string expected = train(options());
  for (const Policy policy : policies) {
    for (const PoolKind pool : {PoolKind::packed, PoolKind::paged}) {
      SessionOptions how = options();
      how.memory.scope = BudgetScope::session;
      how.memory.policy = policy;
      how.memory.pool = pool;
      how.memory.tier = TierKind::ram;
      how.memory.budget_bytes = 1 << 20;
      try {
        train(how);
        FAIL() << "a budget of 1 MiB cannot do";
      } catch (const BudgetTooSmall& error) {
        how.memory.budget_bytes = error.facts().advised_bytes;
      }
      EXPECT_EQ(train(how), expected) << static_cast<int>(policy);
    }
  }
}

TEST(SessionBudget, ChangesNoBit) {
  const auto train = [](SessionOptions how) {
    Session session(small_network(), Optimizer::adam(0.01), how);
    for (int i = 0; i < 3; ++i) session.step(Batch(i).inputs());
    session.run(Batch().inputs());
    session.step(Batch().inputs());
    return session.state_sha256();
  };
  expect_same_bits(train, {Policy::window, Policy::automatic, Policy::lms});
}

Optimizer careful_adam() {
  Optimizer optimizer = Optimizer::adamw(0.01, 0.1F);
  optimizer.decay_matrices_only = true;
  optimizer.clip_norm = 0.5F;
  optimizer.moments = MomentType::bf16;
  return optimizer;
}

TEST(SessionBudget, MicroBatchesClippingAndShortMomentsChangeNoBit) {
  const auto train = [](SessionOptions how) {
    how.accumulate = 4;
    Session session(small_network(4), careful_adam(), how);
    for (int i = 0; i < 3; ++i) session.step(Batch(i).inputs());
    return session.state_sha256();
  };
  expect_same_bits(train,
                   {Policy::window, Policy::automatic, Policy::lms, Policy::superneurons, Policy::pooch});
}

TEST(Session, MicroBatchesAreOfOneStepAndRunTakesOne) {
  SessionOptions how = options();
  how.accumulate = 2;
  Session session(small_network(8), careful_adam(), how);
  const Batch batch;
  const double first = session.step(batch.inputs()).loss;
  double last = first;
  for (int i = 0; i < 20; ++i) {
    const StepResult done = session.step(batch.inputs());
    EXPECT_GT(done.gradient_norm, 0);
    last = done.loss;
  }
  EXPECT_LT(last, 0.7 * first);
  EXPECT_EQ(session.steps_done(), 21);
  const std::vector<float> images(8 * 64, 0.5F);
  EXPECT_EQ(session.run({{"images", images}}).outputs.at("logits").shape, (std::vector<std::int64_t>{8, 4}));

  Inputs inputs = batch.inputs();
  inputs["images"] = images;
  EXPECT_THAT(error_of([&] { session.step(inputs); }), HasSubstr("has 512 values, the network takes 1024"));
  std::vector<std::int32_t> labels(16, 0);
  labels[13] = 7;
  inputs = batch.inputs();
  inputs["labels"] = labels;
  EXPECT_THAT(error_of([&] { session.step(inputs); }),
              HasSubstr("has 7 at place 13; the network knows 0 to 3"));
  how.accumulate = 0;
  EXPECT_THAT(error_of([&] { Session(small_network(8), careful_adam(), how); }),
              HasSubstr("0 micro-batches a step are none"));
}

TEST(Session, ShortMomentsAreKeptByCheckpoints) {
  const testing::TemporaryFolder folder;
  Session session(small_network(), careful_adam(), options());
  for (int i = 0; i < 3; ++i) session.step(Batch(i).inputs());
  std::int64_t numbers = 0;
  for (const char* name : {"conv.weight.exp_avg", "classifier.weight.exp_avg_sq"}) {
    session.read(name, [&](std::span<const float> values) {
      for (const float value : values) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value) & 0xFFFFU, 0U);
        numbers += value != 0 ? 1 : 0;
      }
    });
  }
  EXPECT_GT(numbers, 1000);
  session.save_checkpoint(folder.path() + "/checkpoint");
  Session other(small_network(), careful_adam(), options());
  other.load_checkpoint(folder.path() + "/checkpoint");
  EXPECT_EQ(other.state_sha256(), session.state_sha256());
  session.step(Batch(3).inputs());
  other.step(Batch(3).inputs());
  EXPECT_EQ(other.state_sha256(), session.state_sha256());
  Optimizer sgd = Optimizer::sgd(0.1, 0.9F);
  sgd.moments = MomentType::bf16;
  EXPECT_THAT(error_of([&] { Session(small_network(), sgd, options()); }), HasSubstr("use adam or adamw"));
}

TEST(SessionBudget, AKernelThatMovesNoPagesGivesTheSameBitsAndIsTold) {
  const bool could = VirtualPool::pages_can_move();
  std::vector<std::string> notes;
  const auto train = [&](std::int64_t budget_bytes) {
    SessionOptions how = options();
    how.memory.scope = BudgetScope::session;
    how.memory.pool = PoolKind::paged;
    how.memory.policy = Policy::window;
    how.memory.tier = TierKind::ram;
    how.memory.budget_bytes = budget_bytes;
    how.on_note = [&](const std::string& line) { notes.push_back(line); };
    Session session(small_network(), Optimizer::adam(0.01), how);
    for (int i = 0; i < 3; ++i) session.step(Batch(i).inputs());
    return session.state_sha256();
  };
  std::int64_t budget_bytes = 1 << 20;
  try {
    train(budget_bytes);
    FAIL() << "a budget of 1 MiB cannot do";
  } catch (const BudgetTooSmall& error) {
    budget_bytes = error.facts().advised_bytes;
  }
  const std::string expected = train(budget_bytes);
  EXPECT_THAT(notes, Not(Contains(HasSubstr("does not move pages"))));
  VirtualPool::set_pages_can_move(false);
  EXPECT_EQ(train(budget_bytes), expected);
  VirtualPool::set_pages_can_move(could);
  EXPECT_THAT(notes, Contains(HasSubstr("does not move pages")));
}

TEST(Session, TellsItsPlan) {
  SessionOptions how = options();
  how.memory.budget_bytes = std::int64_t{1} << 30;
  Session session(small_network(), Optimizer::sgd(0.1), how);
  const Forecast plan = session.plan();
  EXPECT_EQ(plan.policy, "keep");
  EXPECT_EQ(plan.budget_bytes, std::int64_t{1} << 30);
  EXPECT_GT(plan.pool_bytes, 0);
  EXPECT_LT(plan.peak_bytes(), plan.budget_bytes);
  EXPECT_THAT(session.plan_text(), HasSubstr("within 1.00 GiB"));
  EXPECT_FALSE(session.explain("conv").empty());
  EXPECT_THAT(error_of([&] { session.explain("nothing"); }), HasSubstr("no such tensor"));
}

TEST(Session, WrongInputsAreRefusedAndChangeNothing) {
  Session session(small_network(), Optimizer::sgd(0.1), options());
  const Batch batch;
  const std::string hash = session.state_sha256();
  const auto with = [&](const std::string& name, const InputArray& array) {
    Inputs inputs = batch.inputs();
    inputs[name] = array;
    return error_of([&] { session.step(inputs); });
  };
  EXPECT_THAT(error_of([&] {
                session.step({{"images", batch.images}});
              }),
              HasSubstr("'labels' of shape [16] is missing"));
  EXPECT_THAT(with("weights", batch.images), HasSubstr("no input 'weights'; it has images, labels"));
  EXPECT_THAT(with("labels", batch.images), HasSubstr("is f32, the network takes s32"));
  EXPECT_THAT(with("images", std::vector<float>(5)), HasSubstr("has 5 values, the network takes 1024"));
  std::vector<float> wrong = batch.images;
  wrong[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(with("images", wrong), HasSubstr("has nan at place 3"));
  std::vector<std::int32_t> labels(16, 0);
  labels[5] = 1000;
  EXPECT_THAT(with("labels", labels), HasSubstr("has 1000 at place 5; the network knows 0 to"));
  EXPECT_THAT(error_of([&] { session.write("conv.weight", wrong); }), HasSubstr("72 values, not 1024"));
  EXPECT_THAT(error_of([&] { session.read("conv.wight", [](auto) {}); }),
              HasSubstr("no tensor of the state"));
  EXPECT_THAT(error_of([&] { session.set_learning_rate(-1); }), HasSubstr("learning rate"));
  EXPECT_EQ(session.state_sha256(), hash);
  EXPECT_GT(session.step(batch.inputs()).loss, 0);
}

/// Where the batch is cut, a function that writes images is asked for slice after slice; whole arrays serve
/// as they do uncut.
TEST(Session, ImagesComeInSlicesWhereTheBatchIsCut) {
  SessionOptions cut = options();
  cut.memory.slice_samples = 6;
  Session of_arrays(small_network(), Optimizer::sgd(0.1), cut),
      of_writer(small_network(), Optimizer::sgd(0.1), cut);
  const Batch batch;
  Inputs inputs = batch.inputs();
  std::vector<std::int64_t> first;
  inputs["images"] = InputArray([&](const InputPart& part) {
    first.push_back(part.first);
    std::copy_n(batch.images.begin() + part.first * 64, part.count * 64, static_cast<float*>(part.to));
  });
  EXPECT_EQ(of_writer.step(inputs).loss, of_arrays.step(batch.inputs()).loss);
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 5, 10}));
  EXPECT_EQ(of_writer.state_sha256(), of_arrays.state_sha256());
  Inputs wrong = batch.inputs();
  wrong["images"] = InputArray(batch.labels);
  EXPECT_THAT(error_of([&] { of_arrays.step(wrong); }), HasSubstr("input 'images' is"));
  wrong.erase("images");
  EXPECT_THAT(error_of([&] { of_arrays.step(wrong); }),
              HasSubstr("input 'images' of shape [16, 1, 8, 8] is missing"));
  wrong["images.0"] = InputArray(batch.images);
  EXPECT_THAT(error_of([&] { of_arrays.step(wrong); }),
              HasSubstr("no input 'images.0'; it has images, labels"));
  EXPECT_TRUE(of_arrays.run({{"labels", batch.labels}}).outputs.empty());
}

TEST(Session, EndsWithWhatGoesWrongInAStepAndSaysSoAfterwards) {
  Session session(small_network(), Optimizer::sgd(0.1), options());
  Batch batch;
  Inputs inputs = batch.inputs();
  inputs["images"] = InputArray([](const InputPart&) { throw RunError("the data is gone"); });
  EXPECT_THROW(session.step(inputs), RunError);
  EXPECT_THAT(error_of([&] { session.step(batch.inputs()); }),
              HasSubstr("ended (the data is gone); make a new one"));
}

TEST(Session, IsForOneThreadAtATime) {
  Session session(small_network(), Optimizer::sgd(0.1), options());
  const Batch batch;
  std::string said;
  Inputs inputs = batch.inputs();
  inputs["images"] = InputArray([&](const InputPart& part) {
    std::copy(batch.images.begin(), batch.images.end(), static_cast<float*>(part.to));
    std::thread([&] { said = error_of([&] { session.step(batch.inputs()); }); }).join();
  });
  EXPECT_GT(session.step(inputs).loss, 0);
  EXPECT_THAT(said, HasSubstr("one thread at a time"));
}

TEST(Session, TwoSideBySideDoNotDisturbEachOtherNorTheProcess) {
  const int threads = omp_get_max_threads();
  const auto alone = [](int seed) {
    Session session(small_network(), Optimizer::sgd(0.1), options());
    for (int i = 0; i < 4; ++i) session.step(Batch(seed).inputs());
    return session.state_sha256();
  };
  const std::string first = alone(1), second = alone(2);
  std::optional<Session> a, b;
  a.emplace(small_network(), Optimizer::sgd(0.1), options());
  b.emplace(small_network(), Optimizer::sgd(0.1), options());
  std::thread other([&] {
    for (int i = 0; i < 4; ++i) b->step(Batch(2).inputs());
  });
  for (int i = 0; i < 4; ++i) a->step(Batch(1).inputs());
  other.join();
  EXPECT_EQ(a->state_sha256(), first);
  EXPECT_EQ(b->state_sha256(), second);
  EXPECT_EQ(omp_get_max_threads(), threads);
}

}  // namespace
}  // namespace penstock
