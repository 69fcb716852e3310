#include "tier/swap_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/nameless_file.h"
#include "tier/tier_fixture.h"

namespace penstock {
namespace {

std::string refusal(const std::string& directory, std::int64_t needed_bytes) {
  try {
    check_swap_dir(directory, needed_bytes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SwapDir, RefusesWhatWillNotDo) {
  EXPECT_THAT(refusal("/no/such/place", 1), testing::HasSubstr("No such file or directory"));
  const std::string directory = test_swap_dir();
  std::ofstream(directory + "/file") << "x";
  EXPECT_THAT(refusal(directory + "/file", 1), testing::HasSubstr("not a directory"));
  EXPECT_THAT(
      refusal(directory, std::numeric_limits<std::int64_t>::max() / 2),
      testing::AllOf(testing::HasSubstr("needed"), testing::HasSubstr("there"), testing::HasSubstr("TiB")));
  EXPECT_EQ(check_swap_dir(directory, 1), "");
  if (::geteuid() != 0) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_read);
    EXPECT_THAT(refusal(directory, 1), testing::HasSubstr("not writable"));
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  }
  std::filesystem::remove_all(directory);
}

TEST(SwapDir, WarnsOfMemory) {
  if (!is_memory_filesystem("/dev/shm") || !is_writable_directory("/dev/shm"))
    GTEST_SKIP() << "no tmpfs here";
  EXPECT_THAT(check_swap_dir("/dev/shm", 1), testing::HasSubstr("tmpfs"));
}

TEST(SwapDir, ChoosesTheFirstOnDisk) {
  const std::string directory = test_swap_dir();
  EXPECT_EQ(first_swap_dir({"/no/such/place", "/dev/shm", "/proc", directory, "/"}), directory);
  EXPECT_THROW(first_swap_dir({"/no/such/place"}), UserError);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace penstock
