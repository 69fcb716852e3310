#include "base/team.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/openmp.h"
#include "base/threads.h"

namespace penstock {
namespace {

constexpr std::chrono::microseconds kSpin{50};

/// Which thread did each iteration, of loops that OpenMP's directives share out.
struct Division {
  int team = 0;
  std::vector<int> even;
  std::vector<int> in_turn;
  std::vector<int> dynamic_times;
  bool operator==(const Division&) const = default;
};

Division divide(int iterations, int threads) {
  const auto count = static_cast<std::size_t>(iterations);
  Division division{0, std::vector<int>(count, -1), std::vector<int>(count, -1), std::vector<int>(count, 0)};
  // One thread may be in the second dynamic loop while another is still in the first.
  const auto count_one = [&](int i) {
    std::atomic_ref<int>(division.dynamic_times[static_cast<std::size_t>(i)]).fetch_add(1);
  };
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() == 0) division.team = omp_get_num_threads();
#pragma omp for schedule(static)
    for (int i = 0; i < iterations; ++i) division.even[static_cast<std::size_t>(i)] = omp_get_thread_num();
#pragma omp for schedule(static, 3)
    for (int i = 0; i < iterations; ++i) division.in_turn[static_cast<std::size_t>(i)] = omp_get_thread_num();
#pragma omp for schedule(dynamic, 2) nowait
    for (int i = 0; i < iterations; ++i) count_one(i);
#pragma omp for schedule(dynamic)
    for (int i = iterations - 1; i >= 0; --i) count_one(i);
  }
  return division;
}

TEST(ThreadScope, DividesWorkAsOpenMpDoes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see how OpenMP's own threads wait";
#endif
  for (int threads = 1; threads <= 5; ++threads) {
    for (const int iterations : {0, 1, 2, 7, 16, 31}) {
      const Division theirs = divide(iterations, threads);
      const ThreadScope scope(threads);
      const Division ours = divide(iterations, threads);
      EXPECT_EQ(ours, theirs) << threads << " threads, " << iterations << " iterations";
      EXPECT_EQ(ours.dynamic_times, std::vector<int>(static_cast<std::size_t>(iterations), 2));
    }
  }
}

TEST(ThreadScope, EndsWhereItEnds) {
  const int before = omp_get_max_threads();
  {
    const ThreadScope scope(3);
    EXPECT_EQ(omp_get_max_threads(), 3);
    {
      const ThreadScope inner(1);
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), 3);
    std::thread([&] { EXPECT_EQ(omp_get_max_threads(), before); }).join();
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(ThreadScope, APartWithinAPartHasOneThread) {
  const ThreadScope scope(3);
  std::atomic<int> inner_threads{0};
  std::atomic<int> calls{0};
#pragma omp parallel
  {
#pragma omp parallel
    {
      inner_threads += omp_get_num_threads();
      ++calls;
    }
    EXPECT_EQ(omp_get_num_threads(), 3);
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(inner_threads, 3);
}

TEST(ThreadScope, TwoSideBySide) {
  const auto sum = [](int threads) {
    const ThreadScope scope(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> seen(64, 0);
      std::atomic<int> team{0};
#pragma omp parallel
      {
        ++team;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 64; ++i) seen[static_cast<std::size_t>(i)] += i + 1;
      }
      ASSERT_EQ(team, threads);
      for (int i = 0; i < 64; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i + 1);
    }
  };
  std::thread other([&] { sum(2); });
  sum(3);
  other.join();
}

struct Phases {
  Team* team = nullptr;
  std::atomic<int> first{0};
  std::atomic<bool> early{false};
};

TEST(Team, NobodyPassesABarrierBeforeAllAreThere) {
  constexpr int kThreads = 4;
  Team team;
  team.reserve(kThreads);
  for (int round = 0; round < 300; ++round) {
    Phases phases{&team};
    const auto body = [](void* data) {
      auto& in = *static_cast<Phases*>(data);
      for (int phase = 1; phase <= 3; ++phase) {
        ++in.first;
        in.team->barrier();
        if (in.first < phase * kThreads) in.early = true;
        in.team->barrier();
      }
    };
    team.start(kThreads, body, &phases);
    body(&phases);
    team.finish();
    ASSERT_FALSE(phases.early);
    ASSERT_EQ(phases.first, 3 * kThreads);
  }
}

/// Workers that have no core until they are let go.
class NoCores {
 public:
  NoCores() {
    cores = 0;
    set_thread_maker([](std::function<void()> body) {
      return std::thread([body = std::move(body)] {
        cores.wait(0);
        body();
      });
    });
  }
  ~NoCores() { set_thread_maker(nullptr); }
  NoCores(const NoCores&) = delete;
  NoCores& operator=(const NoCores&) = delete;

  static void let_go() {
    cores = 1;
    cores.notify_all();
  }

 private:
  inline static std::atomic<int> cores{0};
};

struct Parts {
  std::vector<std::thread::id> by = std::vector<std::thread::id>(4);
  std::vector<int> loop = std::vector<int>(16, -1);
  std::vector<int> times = std::vector<int>(16, 0);
};

/// What each part of a team of four is given.
Parts parts_of_four() {
  Parts parts;
#pragma omp parallel num_threads(4)
  {
    parts.by[static_cast<std::size_t>(omp_get_thread_num())] = std::this_thread::get_id();
#pragma omp for schedule(static) nowait
    for (int i = 0; i < 16; ++i) parts.loop[static_cast<std::size_t>(i)] = omp_get_thread_num();
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < 16; ++i) ++parts.times[static_cast<std::size_t>(i)];
  }
  return parts;
}

TEST(ThreadScope, TheCallerDoesThePartsOfWorkersWithoutACore) {
  // A thread's team is its own and stays: this one has workers that do not come.
  std::thread caller([] {
    const NoCores none;
    const ThreadScope scope(4);
    const Parts parts = parts_of_four();
    EXPECT_EQ(parts.by, std::vector<std::thread::id>(4, std::this_thread::get_id()));
    for (int i = 0; i < 16; ++i) EXPECT_EQ(parts.loop[static_cast<std::size_t>(i)], i / 4);
    EXPECT_EQ(parts.times, std::vector<int>(16, 1));
    EXPECT_EQ(omp_get_max_threads(), 4);
    EXPECT_EQ(omp_get_num_threads(), 1);
    NoCores::let_go();
    for (int round = 0; round < 1000; ++round) {
      const Parts later = parts_of_four();
      ASSERT_EQ(later.loop, parts.loop);
      ASSERT_EQ(later.times, parts.times);
    }
  });
  caller.join();
}

TEST(Team, PartsWaitForWorkersThatComeLate) {
  const NoCores none;
  Team team;
  team.reserve(3);
  Phases phases{&team};
  const auto body = [](void* data) {
    auto& in = *static_cast<Phases*>(data);
    ++in.first;
    in.team->barrier();
    if (in.first < 3) in.early = true;
  };
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    NoCores::let_go();
  });
  for (int round = 0; round < 100; ++round) {
    phases.first = 0;
    team.start(3, body, &phases);
    body(&phases);
    team.finish();
    ASSERT_FALSE(phases.early);
    ASSERT_EQ(phases.first, 3);
  }
  later.join();
}

double cpu_seconds_of_this_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(Gate, WhoWaitsLongLeavesTheCoreToOthers) {
  Gate gate;
  const std::uint32_t seen = gate.now();
  constexpr std::chrono::milliseconds kWait{100};
  std::thread opener([&] {
    std::this_thread::sleep_for(kWait);
    gate.open();
  });
  const double before = cpu_seconds_of_this_thread();
  gate.wait(seen, kSpin);
  EXPECT_LT(cpu_seconds_of_this_thread() - before, std::chrono::duration<double>(kWait).count() / 10);
  opener.join();
}

TEST(Gate, NoOpeningIsMissed) {
  Gate there;
  Gate back;
  constexpr std::uint32_t kRounds = 20'000;
  std::thread other([&] {
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      there.wait(round, kSpin);
      back.open();
    }
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    there.open();
    back.wait(round, kSpin);
    // Long enough, now and then, for the other to fall asleep.
    if (round % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  other.join();
}

}  // namespace
}  // namespace penstock
