#pragma once

#include "base/team.h"

// What OpenMP's directives mean to a thread whose parallel parts are done by a Team: see ThreadScope.

namespace penstock::shared_work {

/// How many threads the parallel parts of the calling thread have; 0: they are OpenMP's business.
int scope_threads();
void set_scope_threads(int threads);
/// The calling thread's own team has so many threads from now on. Throws RunError if the system gives none.
void reserve(int threads);

/// `threads` 0: as many as there are.
void parallel_start(Team::Body body, void* data, unsigned threads);
void parallel_end();
int thread_number();
int team_size();
bool in_parallel();
void barrier();

/// A loop is begun by all threads of a part; next_...() gives the calling one its next share of it, until
/// there is none. A static loop's shares depend on the team's size alone.
void begin_static_loop(long begin, long end, long step, long chunk);
bool next_static(long* begin, long* end);
void begin_dynamic_loop(long begin, long end, long step, long chunk);
bool next_dynamic(long* begin, long* end);

/// Calls body(data) as number `number` of `threads` of a team; for Team.
void do_part(Team& team, int number, int threads, Team::Body body, void* data);

}  // namespace penstock::shared_work
