#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace penstock {

/// Starts a thread. Throws RunError that names what it does ("reads the data") if the system gives none.
std::thread start_thread(std::function<void()> body, const std::string& what);

/// Starts up to `count` threads of the same body: as many as the system gives, at least one. Throws RunError
/// if it gives none. (A vector of running threads must never be destroyed, so it is not left to callers.)
std::vector<std::thread> start_threads(int count, const std::function<void()>& body, const std::string& what);

/// Calls body(0) to body(count - 1) from this thread and up to `threads` - 1 more, as many as the system
/// gives. Throws what the first of them that threw did, after all others have ended.
void for_each_index(int threads, std::size_t count, const std::function<void(std::size_t)>& body);

/// How start_thread() makes threads, for tests: null is std::thread's constructor.
using ThreadMaker = std::thread (*)(std::function<void()> body);
void set_thread_maker(ThreadMaker maker);

}  // namespace penstock
