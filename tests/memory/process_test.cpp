#include "memory/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// A folder that stands for "/" with files as the kernel would show them.
class FakeRoot : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("penstock-process-test-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    put("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:   4194304 kB\n");
    put("proc/self/status", "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(FakeRoot, WithoutAGroupTheMachineCounts) {
  EXPECT_FALSE(cgroup_memory(root_).has_value());
  EXPECT_EQ(machine_total_bytes(root_), 8 * kGiB);
  EXPECT_EQ(available_memory_bytes(root_), 4 * kGiB + kMiB);
}

TEST_F(FakeRoot, ReadsVersionOne) {
  put("proc/self/mountinfo",
      "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "31 24 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n");
  put("proc/self/cgroup", "5:cpu:/elsewhere\n4:memory:/jobs/one\n0::/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
  put("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "1073741824\n");
  put("sys/fs/cgroup/memory/jobs/one/memory.usage_in_bytes", "104857600\n");
  put("sys/fs/cgroup/memory/jobs/one/memory.stat", "cache 5\ntotal_inactive_file 4857600\n");
  const auto group = cgroup_memory(root_);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->limit_bytes, kGiB);
  EXPECT_EQ(group->used_bytes, 100'000'000);
  EXPECT_EQ(available_memory_bytes(root_), kGiB - 100'000'000 + kMiB);
}

TEST_F(FakeRoot, VersionTwoTakesTheTightestOfTheGroupsAbove) {
  put("proc/self/mountinfo", "31 24 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  put("proc/self/cgroup", "0::/jobs/one\n");
  put("sys/fs/cgroup/jobs/memory.max", "500000000\n");
  put("sys/fs/cgroup/jobs/memory.current", "100000000\n");
  put("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  put("sys/fs/cgroup/jobs/one/memory.current", "1\n");
  const auto group = cgroup_memory(root_);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->limit_bytes, 500'000'000);
  EXPECT_EQ(group->used_bytes, 100'000'000);
}

TEST_F(FakeRoot, InAContainerTheMountItselfIsTheGroup) {
  put("proc/self/mountinfo", "31 24 0:27 /x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  put("proc/self/cgroup", "0::/not/visible/here\n");
  put("sys/fs/cgroup/memory.max", "1000\n");
  put("sys/fs/cgroup/memory.current", "400\n");
  const auto group = cgroup_memory(root_);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->limit_bytes, 1000);
}

TEST_F(FakeRoot, WithoutMeminfoTheSystemIsAsked) {
  EXPECT_EQ(missing_counts(root_), "");
  put("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1024 kB\nCached: 2048 kB\n");
  EXPECT_EQ(machine_available_bytes(root_), 3 * kMiB);
  fs::remove(root_ / "proc/meminfo");
  EXPECT_GT(machine_total_bytes(root_), 64 * kMiB);
  EXPECT_GT(machine_available_bytes(root_), 0);
  EXPECT_LE(machine_available_bytes(root_), machine_total_bytes(root_));
  EXPECT_GT(default_memory_budget(available_memory_bytes(root_)), 0);
  EXPECT_NE(missing_counts(root_).find("meminfo"), std::string::npos);
}

TEST_F(FakeRoot, WithoutItsStatusThePeakIsCounted) {
  EXPECT_EQ(process_memory(root_).resident_bytes, kMiB);
  EXPECT_EQ(process_memory(root_).peak_resident_bytes, 2 * kMiB);
  put("proc/self/status", "Name:\tx\n");
  EXPECT_GT(process_memory(root_).resident_bytes, kMiB / 2);
  EXPECT_GE(process_memory(root_).peak_resident_bytes, process_memory(root_).resident_bytes);
  EXPECT_NE(missing_counts(root_).find("status"), std::string::npos);
}

TEST(Process, CountsItsOwnMemory) {
  const ProcessMemory before = process_memory();
  EXPECT_GT(before.resident_bytes, kMiB / 2);
  std::vector<char> block(32 * kMiB, 1);
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.resident_bytes - before.resident_bytes, 30 * kMiB);
  EXPECT_GE(after.peak_resident_bytes, after.resident_bytes);
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), machine_total_bytes() + after.resident_bytes);
}

TEST(Process, DefaultBudgetLeavesAMargin) {
  EXPECT_EQ(default_memory_budget(20 * kGiB), 19 * kGiB);
  EXPECT_EQ(default_memory_budget(kGiB), kGiB - 128 * kMiB);
  EXPECT_EQ(default_memory_budget(128 * kMiB), 64 * kMiB);
}

}  // namespace
}  // namespace penstock
