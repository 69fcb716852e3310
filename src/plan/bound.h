#pragma once

#include <string>

#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// Which argument gives a bound.
enum class BoundKind : std::uint8_t {
  compute,    ///< all ops run once
  transfers,  ///< what a given boundary has on the tier comes and goes
  memory,     ///< what cannot be in memory while op `op` runs is moved or made anew
};

struct Bound {
  double seconds = 0;  ///< infinite where no plan exists
  BoundKind kind = BoundKind::compute;
  ir::OpId op = ir::kNone;     ///< of `memory`
  double compute_seconds = 0;  ///< compute alone, every op in its fastest variant
};

/// A time below which no step can be, whatever plan the checker accepts, ops in any order: per step, on
/// average over many steps. Takes the problem as it was made, in time about linear in its ops.
///
/// Proof. Each op runs once at least, one after the other: compute. With a given boundary, state that it has
/// on the tier and that an op reads is read, state that changes and ends on the tier is written: transfers.
///
/// Memory, for any op p: let the step be cut in three: before p runs first, while it does, after. Whatever
/// the order, the ops that p depends on run before (their time: C1), those that depend on it after (C2), the
/// rest on either side. A value is live at p if an op before p makes it, or the step begins with it, and an
/// op after p reads it, or the step ends with it. While p runs, its inputs, outputs and scratch have memory,
/// but for inputs that p may write over, which count as live values; of these only as much as then is left. A
/// value that has no memory while p runs is either on the tier alone, so it was written between its making
/// and p (unless no step changes it) and is read between p and its next use; or it is nowhere, and the op
/// that makes it runs again after p, which gives back all that op's values. Values made in this step were
/// made before p, so they are written in the first part and read or made anew in the last; state that stays
/// on the tier over the boundary may use the other part of the step before or after. So the live bytes that
/// do not fit pay at least at the lowest price per byte, each price a weighted sum of the seconds it adds to
/// compute and to the tier in the two parts, and each part lasts at least any weighted mean of its compute
/// and of its tier's time: a bound for each choice of weights. (It is the dual of a linear program; the
/// search tries some weights.) At most one live value has each storage, because the graph never reads a
/// tensor after another of its storage is written.
///
/// Space: at most tier_bytes of live bytes are on the tier while p runs. So for any price q of a byte there,
/// what being away costs is at least its cost with q more for each moved byte, less q times tier_bytes.
///
/// A tier's time for R bytes read and W written is at least r R + w W for each (r, w) under which none of
/// what it can do in a second (read alone, write alone, both together) takes longer than that second.
Bound lower_bound(const Problem& problem, const Profile& profile);

/// "compute alone", "transfers from and to the given boundary", "memory at op 'NAME'".
std::string bound_text(const Problem& problem, const Bound& bound);

}  // namespace penstock::plan
