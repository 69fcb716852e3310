#include "base/openmp.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/bind_calls.h"
#include "base/error.h"
#include "base/shared_work.h"

// GCC turns OpenMP's directives into calls of the functions at the end of this file, which libgomp defines
// too. Those that are made outside of a ThreadScope go on to libgomp. (Clang calls other functions: there a
// ThreadScope only says how many threads there are.)

namespace penstock {
namespace {

#ifndef __clang__

using Body = void(void*);

bool ours() {
  return shared_work::scope_threads() > 0;
}

/// libgomp's function of that name.
template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  require(function != nullptr, "OpenMP's library is there and has what GCC calls");
}

struct Libgomp {
  void (*parallel)(Body*, void*, unsigned, unsigned);
  void (*parallel_start)(Body*, void*, unsigned);
  void (*parallel_end)();
  void (*barrier)();
  bool (*static_start)(long, long, long, long, long*, long*);
  bool (*static_next)(long*, long*);
  bool (*dynamic_start)(long, long, long, long, long*, long*);
  bool (*dynamic_next)(long*, long*);
  void (*loop_end)();
  void (*loop_end_nowait)();
  int (*thread_num)();
  int (*num_threads)();
  int (*max_threads)();
  int (*in_parallel)();

  Libgomp() {
    find(parallel, "GOMP_parallel");
    find(parallel_start, "GOMP_parallel_start");
    find(parallel_end, "GOMP_parallel_end");
    find(barrier, "GOMP_barrier");
    find(static_start, "GOMP_loop_static_start");
    find(static_next, "GOMP_loop_static_next");
    find(dynamic_start, "GOMP_loop_nonmonotonic_dynamic_start");
    find(dynamic_next, "GOMP_loop_nonmonotonic_dynamic_next");
    find(loop_end, "GOMP_loop_end");
    find(loop_end_nowait, "GOMP_loop_end_nowait");
    find(thread_num, "omp_get_thread_num");
    find(num_threads, "omp_get_num_threads");
    find(max_threads, "omp_get_max_threads");
    find(in_parallel, "omp_in_parallel");
  }
};

const Libgomp& libgomp() {
  static const Libgomp functions;
  return functions;
}

// What stands behind each name: a Team's way in a ThreadScope, libgomp's elsewhere.

void any_parallel(Body* body, void* data, unsigned threads, unsigned flags) {
  if (!ours()) return libgomp().parallel(body, data, threads, flags);
  shared_work::parallel_start(body, data, threads);
  body(data);
  shared_work::parallel_end();
}
void any_parallel_start(Body* body, void* data, unsigned threads) {
  ours() ? shared_work::parallel_start(body, data, threads) : libgomp().parallel_start(body, data, threads);
}
void any_parallel_end() {
  ours() ? shared_work::parallel_end() : libgomp().parallel_end();
}
void any_barrier() {
  ours() ? shared_work::barrier() : libgomp().barrier();
}
bool any_static_start(long begin, long end, long step, long chunk, long* first, long* last) {
  if (!ours()) return libgomp().static_start(begin, end, step, chunk, first, last);
  shared_work::begin_static_loop(begin, end, step, chunk);
  return shared_work::next_static(first, last);
}
bool any_static_next(long* first, long* last) {
  return ours() ? shared_work::next_static(first, last) : libgomp().static_next(first, last);
}
bool any_dynamic_start(long begin, long end, long step, long chunk, long* first, long* last) {
  if (!ours()) return libgomp().dynamic_start(begin, end, step, chunk, first, last);
  shared_work::begin_dynamic_loop(begin, end, step, chunk);
  return shared_work::next_dynamic(first, last);
}
bool any_dynamic_next(long* first, long* last) {
  return ours() ? shared_work::next_dynamic(first, last) : libgomp().dynamic_next(first, last);
}
void any_loop_end() {
  ours() ? shared_work::barrier() : libgomp().loop_end();
}
void any_loop_end_nowait() {
  if (!ours()) libgomp().loop_end_nowait();
}
int any_thread_num() {
  return ours() ? shared_work::thread_number() : libgomp().thread_num();
}
int any_num_threads() {
  return ours() ? shared_work::team_size() : libgomp().num_threads();
}
int any_max_threads() {
  return ours() ? shared_work::scope_threads() : libgomp().max_threads();
}
int any_in_parallel() {
  return ours() ? static_cast<int>(shared_work::in_parallel()) : libgomp().in_parallel();
}

template <typename Function>
BoundCall call(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

/// In a program its own functions come before those of libraries. In a library that was loaded into a
/// program, a Python module for example, another OpenMP's may come first, so there Penstock's calls and
/// oneDNN's are bound anew.
void bind_once() {
  static std::once_flag bound;
  std::call_once(bound, [] {
    const std::array calls{call("GOMP_parallel", any_parallel),
                           call("GOMP_parallel_start", any_parallel_start),
                           call("GOMP_parallel_end", any_parallel_end),
                           call("GOMP_barrier", any_barrier),
                           call("GOMP_loop_static_start", any_static_start),
                           call("GOMP_loop_static_next", any_static_next),
                           call("GOMP_loop_nonmonotonic_dynamic_start", any_dynamic_start),
                           call("GOMP_loop_nonmonotonic_dynamic_next", any_dynamic_next),
                           call("GOMP_loop_end", any_loop_end),
                           call("GOMP_loop_end_nowait", any_loop_end_nowait),
                           call("omp_get_thread_num", any_thread_num),
                           call("omp_get_num_threads", any_num_threads),
                           call("omp_get_max_threads", any_max_threads),
                           call("omp_in_parallel", any_in_parallel)};
    bind_calls(reinterpret_cast<const void*>(any_parallel), calls);
    if (const void* onednn = ::dlsym(RTLD_DEFAULT, "dnnl_version")) bind_calls(onednn, calls);
  });
}

#else

void bind_once() {}

#endif

}  // namespace

ThreadScope::ThreadScope(int threads) : before_(shared_work::scope_threads()) {
  bind_once();
  shared_work::reserve(threads);
  openmp_before_ = omp_get_max_threads();
  omp_set_num_threads(std::max(1, threads));
  shared_work::set_scope_threads(std::max(1, threads));
}

ThreadScope::~ThreadScope() {
  shared_work::set_scope_threads(before_);
  omp_set_num_threads(openmp_before_);
}

}  // namespace penstock

#ifndef __clang__
extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  penstock::any_parallel(body, data, threads, flags);
}
void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads) {
  penstock::any_parallel_start(body, data, threads);
}
void GOMP_parallel_end() {
  penstock::any_parallel_end();
}
void GOMP_barrier() {
  penstock::any_barrier();
}
bool GOMP_loop_static_start(long begin, long end, long step, long chunk, long* first, long* last) {
  return penstock::any_static_start(begin, end, step, chunk, first, last);
}
bool GOMP_loop_static_next(long* first, long* last) {
  return penstock::any_static_next(first, last);
}
bool GOMP_loop_nonmonotonic_dynamic_start(long begin, long end, long step, long chunk, long* first,
                                          long* last) {
  return penstock::any_dynamic_start(begin, end, step, chunk, first, last);
}
bool GOMP_loop_nonmonotonic_dynamic_next(long* first, long* last) {
  return penstock::any_dynamic_next(first, last);
}
void GOMP_loop_end() {
  penstock::any_loop_end();
}
void GOMP_loop_end_nowait() {
  penstock::any_loop_end_nowait();
}
int omp_get_thread_num() noexcept {
  return penstock::any_thread_num();
}
int omp_get_num_threads() noexcept {
  return penstock::any_num_threads();
}
int omp_get_max_threads() noexcept {
  return penstock::any_max_threads();
}
int omp_in_parallel() noexcept {
  return penstock::any_in_parallel();
}

}  // extern "C"
#endif
