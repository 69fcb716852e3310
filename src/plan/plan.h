#pragma once

#include <cstdint>
#include <string>

#include "base/long_vector.h"
#include "ir/tensor.h"

namespace penstock::plan {

/// What an instruction does. S is a storage; its id and an op's id are those of the graph.
enum class Action : std::uint8_t {
  acquire,   ///< gives S memory; what it holds is undefined
  run,       ///< runs an op (once more, if it ran before)
  swap_out,  ///< starts to write S to the tier; S stays readable meanwhile
  swap_in,   ///< gives S memory and starts to read it from the tier
  wait,      ///< blocks until the transfer of S is complete
  release,   ///< takes the memory of S back; no transfer of it is under way
  /// Gives S the memory of another storage and what it holds. The op that runs next, with nothing but other
  /// adopts in between, reads it there and writes S over it.
  adopt,
};

const char* action_name(Action action);

/// A plan has several for each op and is there as long as it runs, so they are small.
struct Instruction {
  Action action : 3 = Action::run;
  std::int32_t id : 29 = ir::kNone;    ///< the op of `run`, the storage of all others
  std::int32_t variant : 6 = 0;        ///< of `run`: which of the op's kernels
  std::int32_t from : 26 = ir::kNone;  ///< of `adopt`: the storage that has no memory from then on

  Instruction() = default;
  Instruction(Action what, std::int32_t which, std::int32_t kernel = 0, std::int32_t giver = ir::kNone)
      : action(what), id(which), variant(kernel), from(giver) {}
  bool operator==(const Instruction&) const = default;

  /// Whether these can be written down.
  static bool has_room(std::int64_t id, std::int64_t variant, std::int64_t from) {
    const auto within = [](std::int64_t number, int bits) {
      return number >= -(std::int64_t{1} << (bits - 1)) && number < std::int64_t{1} << (bits - 1);
    };
    return within(id, 29) && within(variant, 6) && within(from, 26);
  }
};
static_assert(sizeof(Instruction) == 8);

enum class Transfer : std::uint8_t { none, read, write };

/// Where one storage of the state is when a step begins, and so where the step leaves it when it ends.
struct Standing {
  ir::StorageId storage = ir::kNone;
  bool resident = true;               ///< has memory (holds its value, or `pending` is a read into it)
  bool on_tier = false;               ///< the tier has its present value (`pending` write: will have)
  Transfer pending = Transfer::none;  ///< a transfer that crosses from one step to the next
  bool operator==(const Standing&) const = default;
};

/// Where each storage of the state stands, by storage.
using Boundary = LongVector<Standing>;

/// The same once all transfers are complete.
Boundary settled(Boundary boundary);

/// What a plan costs, from its instructions alone.
struct Summary {
  std::int64_t peak_bytes = 0;  ///< the most at any instruction, scratch included, fixed bytes not
  std::int64_t swapped_out_bytes = 0;
  std::int64_t swapped_in_bytes = 0;
  std::int64_t tier_bytes = 0;  ///< how large the tier must be
  std::int64_t runs = 0;        ///< ops run, repetitions included
  std::int64_t recomputed = 0;  ///< of these, repetitions
  bool operator==(const Summary&) const = default;
};

/// One step as a list of instructions: a cycle that ends at the boundary it began with. Plain data.
struct Plan {
  std::string policy;
  std::int64_t budget_bytes = 0;  ///< the Problem's
  Boundary boundary;
  LongVector<Instruction> instructions;
  Summary summary;  ///< filled in by the checker
  /// For a pool that does not move memory: the offset of each storage and scratch, in the order in which the
  /// instructions give them memory. Empty: for the pool to say.
  LongVector<std::int64_t> offsets;
  /// For such a pool: where each slot is between steps; -1: it never is in memory then.
  LongVector<std::int64_t> homes;
  /// By storage: where it lies on the tier, a multiple of kTierGrain; -1: nowhere. Storages that are there at
  /// different times may share a place. Empty: each that is ever there has a place of its own.
  LongVector<std::int64_t> places;
};

/// Places on the tier begin at multiples of this, and take multiples of it.
inline constexpr std::int64_t kTierGrain = 4096;
std::int64_t place_bytes(std::int64_t size_bytes);

}  // namespace penstock::plan
