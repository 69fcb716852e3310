#include "fit/fit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "fit/fit_json.h"
#include "fit/offset_check.h"
#include "memory/pack.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"
#include "run/toy.h"

namespace penstock::fit {
namespace {

/// A training step; its forward ops alone are the evaluation.
struct Subject {
  explicit Subject(std::uint64_t seed, int layers = 9, int most_elements = 65536)
      : training(run::toy_executable(plan::random_step(seed, {layers, most_elements, true}))) {
    steps.training = &training;
  }

  Request request(std::int64_t budget, std::optional<PoolKind> pool = std::nullopt,
                  std::optional<Policy> policy = std::nullopt) const {
    Request request;
    request.division.budget_bytes = budget;
    request.division.beside = {{"program", 1000}};
    request.pool = pool;
    request.policy = policy;
    return request;
  }

  std::int64_t smallest(std::optional<PoolKind> pool, std::optional<Policy> policy = std::nullopt) const {
    try {
      first_fit(steps, request(0, pool, policy));
    } catch (const plan::BudgetError& error) {
      return error.needed_bytes();
    }
    return 0;
  }

  plan::Profile profile(const Fit& fit) const { return plan::random_profile(fit.training->problem, 1, 1e8); }

  lower::Executable training;
  Steps steps;
};

constexpr PoolKind kPools[] = {PoolKind::packed, PoolKind::paged};
// Without PoocH's, which would estimate times from shapes that these toy ops do not have.
constexpr Policy kPolicies[] = {Policy::keep, Policy::lms, Policy::superneurons, Policy::window,
                                Policy::automatic};

TEST(Fit, TheSmallestBudgetThatIsNamedWorksAndSoDoesEveryLargerOne) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Subject subject(seed, 6);
    for (const PoolKind pool : kPools) {
      for (const Policy policy : kPolicies) {
        const std::int64_t smallest = subject.smallest(pool, policy);
        EXPECT_THROW(first_fit(subject.steps, subject.request(smallest - 1, pool, policy)),
                     plan::BudgetError);
        for (std::int64_t budget = smallest, i = 0; i < 6; ++i, budget += 1 + i * 12000) {
          const Request request = subject.request(budget, pool, policy);
          const plan::Profile profile = subject.profile(first_fit(subject.steps, request));
          const Fit fit = best_fit(subject.steps, request, &profile);
          EXPECT_LE(fit.pool_bytes(), budget - 1000) << plan::policy_name(policy) << " seed " << seed;
          EXPECT_TRUE(plan::check(fit.training->problem, fit.training->plan).ok);
        }
      }
    }
  }
}

TEST(Fit, ARefusalNamesTheWholeBudget) {
  const Subject subject(1);
  try {
    first_fit(subject.steps, subject.request(5000));
    FAIL();
  } catch (const plan::BudgetError& error) {
    EXPECT_EQ(error.given_bytes(), 5000);
    EXPECT_EQ(error.needed_bytes(), subject.smallest(std::nullopt));
  }
}

TEST(Fit, WithoutAPolicyAllStaysWhereItFits) {
  const Subject subject(2);
  const std::int64_t all = in_memory_bytes(subject.steps, subject.request(0));
  const Fit roomy = first_fit(subject.steps, subject.request(2 * all));
  EXPECT_EQ(roomy.policy, Policy::keep);
  EXPECT_EQ(roomy.training->plan.summary.swapped_in_bytes, 0);
  EXPECT_FALSE(wants_profile(subject.steps, roomy));
  const Fit tight = first_fit(subject.steps, subject.request(subject.smallest(std::nullopt)));
  EXPECT_EQ(tight.policy, Policy::automatic);
  EXPECT_TRUE(wants_profile(subject.steps, tight));
}

TEST(Fit, WhereMuchIsLostTheSearchGoesOn) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Subject subject(seed, 14);
    const std::int64_t smallest = subject.smallest(PoolKind::paged);
    const std::int64_t all = in_memory_bytes(subject.steps, subject.request(0, PoolKind::paged));
    const Request request =
        subject.request(smallest + (all - smallest) / 3, PoolKind::paged, Policy::automatic);
    const plan::Profile slow =
        plan::random_profile(first_fit(subject.steps, request).training->problem, seed, 1e7);
    const Fit fit = best_fit(subject.steps, request, &slow);
    plan::PlanOptions usual;
    usual.policy = Policy::automatic;
    usual.profile = &slow;
    const plan::Plan plan = plan::make_plan(fit.training->problem, usual);
    const double quick_seconds = plan::simulate(fit.training->problem, plan, *fit.profile).step_seconds;
    EXPECT_LE(fit.predicted_seconds(), 1.001 * quick_seconds) << "seed " << seed;
    faster += fit.predicted_seconds() < 0.99 * quick_seconds ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

/// Where moving small pages takes time and huge ones waste little, the pool is one of huge pages.
TEST(Fit, ALargePoolIsOfHugePages) {
  int huge = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Subject subject(seed, 14, 1 << 25);
    const std::int64_t smallest = subject.smallest(PoolKind::paged);
    const std::int64_t all = in_memory_bytes(subject.steps, subject.request(0, PoolKind::paged));
    for (const std::int64_t budget : {smallest + (all - smallest) / 2, smallest}) {
      const Request request = subject.request(budget, PoolKind::paged, Policy::automatic);
      plan::Profile profile =
          plan::random_profile(first_fit(subject.steps, request).training->problem, seed, 1e9);
      profile.host.mapping_seconds_per_byte = 1e-10;
      const Fit fit = best_fit(subject.steps, request, &profile);
      EXPECT_LE(fit.pool_bytes(), budget - 1000);
      EXPECT_TRUE(plan::check(fit.training->problem, fit.training->plan).ok);
      if (fit.pool->grain_bytes() == std::int64_t{2} << 20) ++huge;
    }
  }
  EXPECT_GE(huge, 4);
}

TEST(Fit, AutoIsNeverPredictedSlowerThanWindowInTheSamePool) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Subject subject(seed, 6);
    for (const PoolKind pool : kPools) {
      const std::int64_t smallest = subject.smallest(pool);
      const std::int64_t all = in_memory_bytes(subject.steps, subject.request(0, pool));
      for (int part = 0; part < 3; ++part) {
        const std::int64_t budget = smallest + (all - smallest) * part / 4;
        const plan::Profile profile =
            subject.profile(first_fit(subject.steps, subject.request(budget, pool, Policy::window)));
        const Fit window = best_fit(subject.steps, subject.request(budget, pool, Policy::window), &profile);
        const Fit best = best_fit(subject.steps, subject.request(budget, pool, Policy::automatic), &profile);
        EXPECT_LE(best.predicted_seconds(), window.predicted_seconds() * (1 + 1e-9)) << seed << " " << part;
      }
    }
  }
}

/// Page tables take memory for each address: those that the margin does not bear are a part of the pool.
TEST(Fit, AVirtualPoolCountsItsPageTables) {
  constexpr std::int64_t kGi = std::int64_t{1} << 30, kMi = std::int64_t{1} << 20;
  EXPECT_EQ(pool_size(5, kGi, 2 * kGi).pool_bytes, 5 + kGi);
  EXPECT_EQ(pool_size(5, kGi, 64 * kGi).pool_bytes, 5 + kGi + 64 * kGi / 512 - 8 * kMi);
}

/// Slots that are in memory at different times share addresses, and small ones their bytes.
TEST(Fit, AddressesOfAVirtualPoolDoNotGrowWithTheStep) {
  PoolSize least[2];
  std::int64_t all[2] = {};
  for (const int i : {0, 1}) {
    const Subject subject(7, i == 0 ? 20 : 200);
    const std::int64_t smallest = subject.smallest(PoolKind::paged, Policy::window);
    least[i] = first_fit(subject.steps, subject.request(smallest, PoolKind::paged, Policy::window)).size;
    all[i] = in_memory_bytes(subject.steps, subject.request(0, PoolKind::paged));
    EXPECT_LT(least[i].address_bytes, 3 * least[i].paged_bytes);
  }
  EXPECT_GT(all[1], 5 * all[0]);
  EXPECT_LT(least[1].address_bytes, 2 * least[0].address_bytes);
}

TEST(Fit, OffsetsAreProvedAndDamageIsSeen) {
  for (const PoolKind pool : kPools) {
    int seen = 0, cases = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Subject subject(seed);
      const std::int64_t budget = subject.smallest(pool) + 20000;
      Fit fit = first_fit(subject.steps, subject.request(budget, pool));
      plan::Plan& plan = fit.training->plan;
      const PlannedStep planned[] = {{subject.steps.training, &fit.training->problem, &plan}};
      const auto wrong = [&](const PoolSize& size) {
        return !check_offsets(fit.map, planned, size, fit.pool->grain_bytes()).empty();
      };
      EXPECT_FALSE(wrong(fit.size));
      const auto damage = [&](std::int64_t& number, std::initializer_list<std::int64_t> others) {
        const std::int64_t right = number;
        for (const std::int64_t other : others) {
          if (other == right) continue;
          number = other;
          ++cases;
          if (wrong(fit.size)) ++seen;
        }
        number = right;
      };
      for (std::int64_t& offset : plan.offsets)
        damage(offset, {-64, fit.pool_bytes() + fit.size.address_bytes, offset + 1, 0});
      for (const plan::Standing& state : plan.boundary) {
        std::int64_t& home = plan.homes[static_cast<std::size_t>(state.storage)];
        if (state.resident) damage(home, {-64, fit.pool_bytes() + fit.size.address_bytes, home + 64, 0});
      }
      const std::int64_t last = plan.offsets.back();
      plan.offsets.pop_back();
      EXPECT_TRUE(wrong(fit.size));
      plan.offsets.push_back(last);
      plan.offsets.push_back(last);
      EXPECT_TRUE(wrong(fit.size));
      plan.offsets.pop_back();
      // A pool that is smaller than the plan needs, or says that it takes less than it does.
      const std::int64_t grain = fit.pool->grain_bytes();
      if (pool == PoolKind::packed) {
        EXPECT_TRUE(wrong(pool_size(fit.size.small_bytes - kPackedPage, 0, 0)));
      } else {
        const PoolSize& size = fit.size;
        EXPECT_TRUE(wrong(pool_size(0, size.paged_bytes, size.address_bytes)));
        EXPECT_TRUE(wrong(pool_size(size.small_bytes, size.paged_bytes - grain, size.address_bytes)));
        EXPECT_TRUE(wrong(pool_size(size.small_bytes, size.paged_bytes, size.paged_bytes - grain)));
      }
      PoolSize less = fit.size;
      --less.pool_bytes;
      EXPECT_TRUE(wrong(less));
    }
    // What is moved to where nobody is at the time is as good as before.
    EXPECT_GT(seen, cases * 3 / 4) << cases;
  }
}

TEST(Fit, RefittingKeepsThePoolTheTierAndWhatIsInMemory) {
  for (const PoolKind pool : kPools) {
    int refitted = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Subject subject(seed, 6);
      const std::int64_t budget =
          (subject.smallest(pool) + in_memory_bytes(subject.steps, subject.request(0, pool))) / 2;
      const Request request = subject.request(budget, pool, Policy::automatic);
      plan::Profile profile = subject.profile(first_fit(subject.steps, request));
      Fit fit = best_fit(subject.steps, request, &profile);
      for (int round = 0; round < 3; ++round) {
        profile.tier.read_bandwidth *= round % 2 == 0 ? 0.1 : 12;
        profile.tier.write_bandwidth *= round % 2 == 0 ? 0.1 : 12;
        try {
          const Fit next = refit(subject.steps, fit, profile);
          ++refitted;
          EXPECT_EQ(next.size, fit.size);
          EXPECT_EQ(next.map.extent, fit.map.extent);
          EXPECT_EQ(next.map.tier_bytes, fit.map.tier_bytes);
          for (const ir::StorageId s : fit.training->problem.state()) {
            const auto storage = static_cast<std::size_t>(s);
            EXPECT_TRUE(fit.map.place(storage) < 0 || next.map.place(storage) == fit.map.place(storage));
          }
          for (const plan::Standing& state : next.training->plan.boundary) {
            if (!state.on_tier) continue;
            EXPECT_GE(fit.map.extent[static_cast<std::size_t>(state.storage)], 0);
          }
          const auto& before = fit.training->plan.boundary;
          for (std::size_t i = 0; i < before.size(); ++i) {
            if (!before[i].resident || !next.training->plan.boundary[i].resident) continue;
            const auto slot = static_cast<std::size_t>(before[i].storage);
            EXPECT_EQ(next.training->plan.homes[slot], fit.training->plan.homes[slot]);
          }
          fit = next;
        } catch (const plan::BudgetError&) {
          // The pool was made for one plan and may hold no other.
        }
      }
    }
    EXPECT_GT(refitted, 3);
  }
}

TEST(FitJson, APlanFileComesBackAsItWas) {
  for (const PoolKind pool : kPools) {
    const Subject subject(3);
    const std::int64_t budget = subject.smallest(pool) + 30000;
    const Fit fit = best_fit(subject.steps, subject.request(budget, pool, Policy::window), nullptr);
    const std::string text = fit_to_json(subject.steps, fit, "toy", 1);
    Division division;
    division.beside = {{"program", 500}, {"margin", 500}};
    const Fit back = fit_from_json(subject.steps, division, text, "file");
    EXPECT_EQ(back.training->plan.instructions, fit.training->plan.instructions);
    EXPECT_EQ(back.training->plan.offsets, fit.training->plan.offsets);
    EXPECT_EQ(back.training->plan.homes, fit.training->plan.homes);
    EXPECT_EQ(back.size, fit.size);
    EXPECT_EQ(back.division.budget_bytes, budget);
    EXPECT_EQ(back.map.extent, fit.map.extent);
    EXPECT_EQ(back.map.extent_offset, fit.map.extent_offset);
    EXPECT_EQ(back.map.tier_bytes, fit.map.tier_bytes);
    EXPECT_EQ(back.pool->name(), fit.pool->name());
  }
}

TEST(FitJson, DamageIsRefusedWithTheFilesName) {
  const Subject subject(4);
  for (const PoolKind pool : kPools) {
    const Fit fit = first_fit(subject.steps, subject.request(subject.smallest(pool) + 30000, pool));
    const std::string good = fit_to_json(subject.steps, fit, "toy", 1);
    const auto refused = [&](const std::string& text) {
      try {
        fit_from_json(subject.steps, {}, text, "the file");
        return false;
      } catch (const UserError& error) {
        return std::string(error.what()).starts_with("the file: ");
      }
    };
    const auto with = [&](const std::string& from, const std::string& to) {
      std::string text = good;
      text.replace(text.find(from), from.size(), to);
      return text;
    };
    EXPECT_FALSE(refused(good));
    EXPECT_TRUE(refused(""));
    EXPECT_TRUE(refused("[]"));
    EXPECT_TRUE(refused(with("\"version\":4", "\"version\":3")));
    EXPECT_TRUE(refused(with("\"pool\":\"", "\"pool\":\"pond ")));
    for (const std::string key : {"pool_bytes", "small_bytes", "paged_bytes", "address_bytes", "tier_bytes"})
      EXPECT_TRUE(refused(with("\"" + key + "\":", "\"" + key + "\":-1"))) << key;
    EXPECT_TRUE(refused(with("\"extents\":[", "\"extents\":[[-1,0],")));
    EXPECT_TRUE(refused(with("\"run\"", "\"wait\"")));
    EXPECT_TRUE(refused(with("\"offsets\":[", "\"offsets\":[1,")));
    EXPECT_TRUE(refused(good.substr(0, good.size() / 2)));
  }
}

/// The state is where the plan in use wants it, whatever plans came before; what is not state may lie
/// elsewhere on the tier from plan to plan.
TEST(Fit, PlansReplacedInMidRunChangeNoBit) {
  for (const PoolKind pool : kPools) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Subject subject(seed, 6);
      const std::int64_t budget =
          (subject.smallest(pool) + in_memory_bytes(subject.steps, subject.request(0, pool))) / 2;
      const Request request = subject.request(budget, pool, Policy::automatic);
      plan::Profile profile = subject.profile(first_fit(subject.steps, request));
      std::vector<Fit> fits{best_fit(subject.steps, request, &profile)};
      for (int round = 0; round < 4; ++round) {
        profile.tier.read_bandwidth *= round % 2 == 0 ? 0.05 : 30;
        profile.tier.write_bandwidth *= round % 2 == 0 ? 0.05 : 30;
        try {
          fits.push_back(refit(subject.steps, fits.back(), profile));
        } catch (const plan::BudgetError&) {
        }
      }
      const auto hash = [&](const std::vector<int>& order) {
        const std::unique_ptr<Pool> memory = fits[0].pool->make_pool(fits[0].size);
        StorageMap map = fits[0].map;
        run::LazyTier tier(map.extents());
        run::Executor executor(*memory, map, &tier, fits[0].training->plan.homes);
        run::fill_state(executor, subject.training);
        kernels::StepContext context;
        for (const int which : order) {
          const auto i = std::min(static_cast<std::size_t>(which), fits.size() - 1);
          map.extent_offset = fits[i].map.extent_offset;
          tier.place(map.extent_offset);
          executor.run(subject.training, fits[i].training->plan, context);
          ++context.step;
        }
        return run::state_digest(executor, subject.training);
      };
      const auto expected = hash({0, 0, 0, 0, 0, 0, 0, 0});
      EXPECT_EQ(hash({0, 1, 2, 3, 4, 4, 4, 4}), expected) << seed;
      EXPECT_EQ(hash({0, 0, 1, 1, 1, 2, 2, 4}), expected) << seed;
      EXPECT_EQ(hash({0, 2, 2, 3, 3, 3, 3, 4}), expected) << seed;
    }
  }
}

}  // namespace
}  // namespace penstock::fit
