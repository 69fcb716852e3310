#include "measure/profile_store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/text_file.h"
#include "session/toy_fit.h"
#include "support/run_program.h"

namespace penstock::measure {
namespace {

/// A store whose cache is in a folder of the test's own and whose tier is memory.
class ProfileStoreTest : public ::testing::Test {
 protected:
  ProfileStoreTest() : toy_(1) {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    request_.tier.kind = TierKind::ram;
    request_.tier.verify = VerifyMode::off;
  }
  ~ProfileStoreTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  ProfileStore store() const { return ProfileStore(toy_.training, request_); }

  testing::TemporaryFolder folder_;
  session::ToyFit toy_;
  ProfileRequest request_;
};

TEST_F(ProfileStoreTest, WhatWasKeptIsFoundByTheSameKeyOnly) {
  ProfileStore kept = store();
  EXPECT_FALSE(kept.find());
  kept.put(toy_.profile);
  ASSERT_TRUE(store().find());
  EXPECT_EQ(store().find()->op_seconds, toy_.profile.op_seconds);
  request_.threads = 7;
  EXPECT_FALSE(store().find());
  request_.threads = 1;
  request_.tier.read_bytes_per_second = 1000;
  EXPECT_FALSE(store().find());
}

TEST_F(ProfileStoreTest, ADamagedCacheIsMeasuredAnew) {
  store().put(toy_.profile);
  const std::string dir = folder_.path() + "/penstock";
  for (const auto& entry : std::filesystem::directory_iterator(dir)) write_file(entry.path().string(), "{");
  EXPECT_FALSE(store().find());
}

TEST_F(ProfileStoreTest, AFileMustBeThereAndOfThisStep) {
  request_.source = ProfileSource::file;
  request_.file = folder_.path() + "/none.json";
  EXPECT_THROW(store(), UserError);
  request_.file = folder_.path() + "/profile.json";
  plan::Profile other = toy_.profile;
  write_file(request_.file, plan::profile_to_json(other));
  EXPECT_EQ(store().get().op_seconds, toy_.profile.op_seconds);
  LongVector<LongVector<double>> rows = other.op_seconds.rows();
  rows.pop_back();
  other.op_seconds = plan::OpSeconds(rows);
  write_file(request_.file, plan::profile_to_json(other));
  EXPECT_THROW(store().find(), UserError);
}

}  // namespace
}  // namespace penstock::measure
