#include <gtest/gtest.h>

#include "session/recorder.h"
#include "session/slow_watch.h"
#include "session/toy_fit.h"

namespace penstock::session {
namespace {

/// A clock and counters that the test moves.
struct Outside {
  OutsideCounts now;
  CountOutside count() {
    return [this] { return now; };
  }
  void step(double seconds, double cpu_seconds) {
    now.wall_seconds += seconds;
    now.cpu_seconds += cpu_seconds;
  }
};

TEST(SlowWatch, SaysOnceWhyStepsAreSlower) {
  const ToyFit toy(1);
  Outside outside;
  SlowWatch watch(toy.fit, 2, outside.count());
  int told = 0;
  for (int step = 0; step < 40; ++step) {
    const StepStats stats = toy.stats(3);
    outside.step(stats.step_seconds, stats.compute_seconds);  // half of what two threads would use
    if (const auto why = watch.after_step(stats, {})) {
      ++told;
      EXPECT_FALSE(why->empty());
    }
  }
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(watch.whole_run().empty());
}

TEST(SlowWatch, SaysNothingWhereStepsAreAsPlannedOrNothingWasPlanned) {
  const ToyFit toy(1);
  Outside outside;
  SlowWatch watch(toy.fit, 2, outside.count());
  for (int step = 0; step < 20; ++step) {
    outside.step(1, 2);
    EXPECT_FALSE(watch.after_step(toy.stats(1), {}));
  }
  EXPECT_TRUE(watch.whole_run().empty());
  fit::Fit unknown = toy.fit;
  unknown.prediction.reset();
  SlowWatch blind(unknown, 2, outside.count());
  for (int step = 0; step < 20; ++step) EXPECT_FALSE(blind.after_step(toy.stats(9), {}));
}

TEST(Recorder, KeepsTheFirstStepsOfThePlanInUse) {
  const ToyFit toy(1);
  Recorder recorder;
  for (int step = 1; step <= 10; ++step) recorder.after_step(step, toy.events(1), toy.fit.training->plan);
  EXPECT_EQ(recorder.steps().size(), Recorder::kMaxSteps);
  plan::Plan other = toy.fit.training->plan;
  other.instructions.pop_back();
  recorder.after_step(11, toy.events(1), other);
  EXPECT_EQ(recorder.steps().size(), 1U);
}

TEST(Recorder, IsBoundedInEvents) {
  const ToyFit toy(1);
  Recorder recorder;
  run::Trace many;
  many.events.resize(Recorder::kMaxEvents);
  recorder.after_step(1, many, toy.fit.training->plan);
  recorder.after_step(2, many, toy.fit.training->plan);
  EXPECT_EQ(recorder.steps().size(), 1U);
}

}  // namespace
}  // namespace penstock::session
