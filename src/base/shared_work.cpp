#include "base/shared_work.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::shared_work {
namespace {

/// Where a thread stands in a parallel part.
struct Member {
  Team* team = nullptr;  ///< none: alone, though in a parallel part if `inside`
  int number = 0;
  int threads = 1;
  bool inside = false;
  std::uint32_t loop = 0;  ///< how many shared loops it has begun
};

/// The loop that a thread is in.
struct Loop {
  long begin = 0;
  long end = 0;
  long step = 1;
  long chunk = 1;
  std::int64_t total = 0;
  std::int64_t taken = 0;  ///< by this thread: of a static loop, its chunks; alone, iterations
};

thread_local constinit Member member;
thread_local constinit Loop loop;
/// Threads that parallel parts of this thread have; 0: OpenMP's own are used.
thread_local constinit int threads_of_scope = 0;
thread_local std::unique_ptr<Team> own_team;
thread_local std::vector<Member> outer_members;

long place_of(std::int64_t iteration) {
  const auto at = static_cast<long>(loop.begin + iteration * loop.step);
  return loop.step > 0 ? std::min(at, loop.end) : std::max(at, loop.end);
}

void begin_loop(long begin, long end, long step, long chunk) {
  const std::int64_t length = step > 0 ? end - begin : begin - end;
  const std::int64_t stride = step > 0 ? step : -step;
  loop = {begin, end, step, chunk, std::max<std::int64_t>(0, (length + stride - 1) / stride), 0};
}

}  // namespace

int scope_threads() {
  return threads_of_scope;
}

void set_scope_threads(int threads) {
  threads_of_scope = threads;
}

void reserve(int threads) {
  if (threads <= 1) return;
  if (!own_team) own_team = std::make_unique<Team>();
  own_team->reserve(threads);
}

void parallel_start(Team::Body body, void* data, unsigned threads) {
  outer_members.push_back(member);
  int count = threads > 0 ? static_cast<int>(threads) : threads_of_scope;
  // A parallel part within another one has one thread, and no part has more than the scope said.
  if (member.inside) count = 1;
  count = std::min(count, threads_of_scope);
  Team* const team = count > 1 ? own_team.get() : nullptr;
  if (team != nullptr) team->start(count, body, data);
  member = {team, 0, count, true, 0};
}

void parallel_end() {
  if (member.team != nullptr) member.team->finish();
  member = outer_members.back();
  outer_members.pop_back();
}

int thread_number() {
  return member.number;
}

int team_size() {
  return member.threads;
}

bool in_parallel() {
  return member.inside && member.threads > 1;
}

void barrier() {
  if (member.team != nullptr) member.team->barrier();
}

void begin_static_loop(long begin, long end, long step, long chunk) {
  begin_loop(begin, end, step, chunk);
}

/// OpenMP's rule: without a chunk each thread has one part, the first ones an iteration more where it does
/// not come out even; with one, the threads take chunks in turn.
bool next_static(long* begin, long* end) {
  std::int64_t first = 0;
  std::int64_t count = 0;
  if (loop.chunk == 0) {
    if (loop.taken++ > 0) return false;
    const std::int64_t more = loop.total % member.threads;
    count = loop.total / member.threads + (member.number < more ? 1 : 0);
    first = member.number * (loop.total / member.threads) + std::min<std::int64_t>(member.number, more);
  } else {
    first = (loop.taken++ * member.threads + member.number) * loop.chunk;
    count = std::min<std::int64_t>(loop.chunk, loop.total - first);
  }
  if (count <= 0) return false;
  *begin = place_of(first);
  *end = place_of(first + count);
  return true;
}

void begin_dynamic_loop(long begin, long end, long step, long chunk) {
  ++member.loop;
  begin_loop(begin, end, step, chunk);
}

bool next_dynamic(long* begin, long* end) {
  const std::int64_t count = std::max<std::int64_t>(1, loop.chunk);
  std::int64_t first = loop.taken;
  if (member.team != nullptr) {
    first = member.team->take(member.loop, count, loop.total);
  } else {
    loop.taken += count;
  }
  if (first >= loop.total) return false;
  *begin = place_of(first);
  *end = place_of(std::min<std::int64_t>(first + count, loop.total));
  return true;
}

void do_part(Team& team, int number, int threads, Team::Body body, void* data) {
  const Member outer_member = member;
  const Loop outer_loop = loop;
  const int outer_threads = threads_of_scope;
  member = {&team, number, threads, true, 0};
  threads_of_scope = threads;
  body(data);
  member = outer_member;
  loop = outer_loop;
  threads_of_scope = outer_threads;
}

}  // namespace penstock::shared_work
