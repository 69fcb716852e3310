#include <gtest/gtest.h>

#include <fstream>

#include "base/bytes.h"
#include "cli/smallest.h"

// A small GPT-2 whose state is several times the budget.
namespace penstock::testing {
namespace {

using Words = std::vector<std::string>;

class BudgetText : public ::testing::Test {
 protected:
  BudgetText() {
    std::ofstream(model_) << R"({"model_type": "gpt2", "n_layer": 6, "n_head": 4, "n_embd": 320,
      "vocab_size": 512, "n_positions": 64, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})";
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.file("config.json");
  const Words run_{"train", model_,  "--batch", "4", "--sequence",   "32", "--optimizer", "adamw",
                   "--lr",  "0.001", "--steps", "2", "--accumulate", "2",  "--clip",      "0.5"};
};

TEST_F(BudgetText, SameBitsUnderAnyBudgetPolicyPoolAndTier) {
  const auto whole = penstock_json(with(run_, {"--policy", "keep"}));
  const std::int64_t most = whole["in_memory_bytes"].get<std::int64_t>() / kMiB;
  const std::int64_t least = smallest_mib(run_, "auto");
  const std::int64_t tier_from = 3 * least / 2;
  ASSERT_GT(most, 2 * least) << "the state does not fit";
  const auto same = [&](std::int64_t budget, const Words& how) {
    const auto part = penstock_json(with(with(run_, {"--memory", std::to_string(budget) + "MiB"}), how));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << budget << " MiB, " << how[1];
    EXPECT_EQ(part["gradient_norm"], whole["gradient_norm"]) << budget << " MiB, " << how[1];
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << budget << " MiB, " << how[1];
    EXPECT_GT(part["swapped_in_bytes"], 0) << budget << " MiB, " << how[1];
  };
  for (int i = 0; i < 8; ++i)
    same(least + (most - least) * i / 9, {"--policy", i % 2 == 0 ? "auto" : "window"});
  for (const Words& how : std::vector<Words>{{"--tier", "disk-threads"},
                                             {"--tier", "ram"},
                                             {"--pool", "packed"},
                                             {"--pool", "virtual"},
                                             {"--swap-space", "1GiB"}})
    same(tier_from, how);
}

/// The policies that keep all state in memory have only the activations to move.
TEST_F(BudgetText, SameBitsByThePoliciesThatKeepStateInMemory) {
  const Words wide = with(run_, {"--batch", "64"});
  const auto whole = penstock_json(with(wide, {"--policy", "keep"}));
  for (const char* policy : {"lms", "superneurons", "pooch"}) {
    const std::string budget = std::to_string(smallest_mib(wide, policy) + 8) + "MiB";
    const auto part = penstock_json(with(wide, {"--policy", policy, "--memory", budget}));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << policy;
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << policy;
  }
}

}  // namespace
}  // namespace penstock::testing
