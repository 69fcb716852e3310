#include "base/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace penstock {
namespace {

std::atomic<ThreadMaker>& maker_in_use() {
  static std::atomic<ThreadMaker> maker{nullptr};
  return maker;
}

std::thread make_thread(std::function<void()> body) {
  const ThreadMaker maker = maker_in_use().load();
  return maker != nullptr ? maker(std::move(body)) : std::thread(std::move(body));
}

[[noreturn]] void refuse(const std::string& what, const std::system_error& error) {
  throw RunError(
      fmt::format("cannot start the thread that {}: {}; is a limit on processes or memory too low?", what,
                  error.code().message()));
}

}  // namespace

std::thread start_thread(std::function<void()> body, const std::string& what) {
  try {
    return make_thread(std::move(body));
  } catch (const std::system_error& error) {
    refuse(what, error);
  }
}

std::vector<std::thread> start_threads(int count, const std::function<void()>& body,
                                       const std::string& what) {
  std::vector<std::thread> threads;
  // No allocation may fail once a thread runs.
  threads.reserve(static_cast<std::size_t>(count));
  std::vector<std::function<void()>> bodies(static_cast<std::size_t>(count), body);
  for (std::function<void()>& each : bodies) {
    try {
      threads.push_back(make_thread(std::move(each)));
    } catch (const std::system_error& error) {
      if (threads.empty()) refuse(what, error);
      break;
    } catch (const std::bad_alloc&) {
      if (threads.empty()) throw;
      break;
    }
  }
  return threads;
}

void set_thread_maker(ThreadMaker maker) {
  maker_in_use().store(maker);
}

void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> thrown(count);
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> helpers;
  try {
    const auto wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), count);
    if (wanted > 1) helpers = start_threads(static_cast<int>(wanted) - 1, work, "helps");
  } catch (const RunError&) {
    // This thread does it alone.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& each : thrown) {
    if (each) std::rethrow_exception(each);
  }
}

}  // namespace penstock
