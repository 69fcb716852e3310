#pragma once

#include <cstddef>
#include <string>
#include <typeinfo>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace penstock::ir {

using Shapes = std::vector<Shape>;

/// An op as the rules of its kind see it.
struct OpShapes {
  const Attrs& attrs;
  const Shapes& in;
  const Shapes& out;
};

/// How many inputs or outputs an op of a kind may have.
struct Count {
  std::size_t min = 1, max = 1;
};
inline constexpr std::size_t kManyTensors = 1U << 30;

/// All that is known of a kind of op, in one row; the rows stand in ir/ops/, by family. A new op is a kind, a
/// row, its kernels and its gradient rule.
struct OpFacts {
  OpKind kind = OpKind::input;
  const char* name = "";
  const std::type_info* attrs = &typeid(NoAttrs);
  Count inputs, outputs;

  /// What each input and output holds, a letter a tensor; the last letter stands for all that follow.
  /// f: f32, i: s32, b: u8, t: any type, the same for all with this letter, n: any type, w: a workspace whose
  /// type and shape are its kernel's business.
  const char* input_types = "f";
  const char* output_types = "f";

  /// The output shapes that inputs and attributes decide. Null: the caller chooses them.
  Shapes (*infer)(const Attrs& attrs, const Shapes& in) = nullptr;
  /// Throws Misfit if the shapes do not fit. Null: the outputs must be what `infer` says, if it is there.
  void (*check)(const OpShapes& op) = nullptr;
  /// Multiply-adds, twice. Null: the op only passes over its tensors.
  double (*flops)(const OpShapes& op) = nullptr;

  /// How the op runs on slices of the batch, a letter a tensor; the last letter stands for all that follow.
  /// s: has the batch as its first axis and is cut, w: whole, the same for each slice; of outputs also +: the
  /// slices' outputs are added up, a: each slice adds its own to what the one before made, which is one more
  /// input behind the others, m: they are combined (statistics). Null: the op is not cut.
  const char* cut_inputs = nullptr;
  const char* cut_outputs = nullptr;
  /// Whether an op with these attributes and shapes can be cut. Null: it always can.
  bool (*can_cut)(const OpShapes& op) = nullptr;

  bool by_rows = false;        ///< what can be cut along the batch can be cut along an image's rows as well
  bool side_effects = false;   ///< does more than compute its outputs, and so runs once in a step
  bool exchange_wait = false;  ///< waits for what other ranks send
  bool dear = false;           ///< its outputs are worth storing; others are cheap to make again
  bool outputs_optional = false;  ///< outputs behind the first ones may be left out
};

const OpFacts& op_facts(OpKind kind);

/// The letter of tensor `index` in a list where the last one stands for all that follow.
char letter_of(const char* letters, std::size_t index);

/// Multiply-adds of an op, twice; 0 for ops that only pass over their tensors.
double op_flops(const Graph& graph, const Op& op);

}  // namespace penstock::ir
