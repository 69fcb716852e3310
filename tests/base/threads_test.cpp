#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <system_error>

#include "base/error.h"

namespace penstock {
namespace {

int threads_left = 0;

std::thread make_few(std::function<void()> body) {
  if (threads_left-- <= 0)
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  return std::thread(std::move(body));
}

/// The system gives only so many threads.
class FewThreads {
 public:
  explicit FewThreads(int count) {
    threads_left = count;
    set_thread_maker(make_few);
  }
  ~FewThreads() { set_thread_maker(nullptr); }
};

TEST(Threads, AsManyAsThereAre) {
  std::atomic<int> ran{0};
  const FewThreads few(3);
  std::vector<std::thread> threads = start_threads(
      8, [&] { ++ran; }, "counts");
  EXPECT_EQ(threads.size(), 3U);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 3);
}

TEST(Threads, NoneIsAnError) {
  const FewThreads few(0);
  EXPECT_THROW(start_threads(
                   8, [] {}, "counts"),
               RunError);
  try {
    start_thread([] {}, "counts");
    FAIL();
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("the thread that counts"), std::string::npos);
  }
}

TEST(Threads, EachIndexOnceHoweverManyThreads) {
  for (const int given : {0, 1, 3}) {
    const FewThreads few(given);
    std::vector<std::atomic<int>> calls(17);
    for_each_index(4, calls.size(), [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
  for_each_index(4, 0, [](std::size_t) { FAIL(); });
}

TEST(Threads, TheFirstIndexThatThrowsIsHeardAfterAllHaveEnded) {
  std::atomic<int> ended{0};
  const auto body = [&](std::size_t i) {
    ++ended;
    if (i == 3 || i == 5) throw UserError(i == 3 ? "three" : "five");
  };
  try {
    for_each_index(2, 9, body);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "three");
  }
  EXPECT_EQ(ended, 9);
}

}  // namespace
}  // namespace penstock
