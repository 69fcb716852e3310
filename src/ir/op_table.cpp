#include "ir/op_table.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "ir/ops/rules.h"

namespace penstock::ir {
namespace {

using Table = std::array<OpFacts, kOpKinds>;

Table make_table() {
  Table table;
  std::array<bool, kOpKinds> present{};
  for (const auto& family :
       {rules::conv_ops, rules::product_ops, rules::norm_ops, rules::pointwise_ops, rules::pool_ops,
        rules::shape_ops, rules::index_ops, rules::loss_ops, rules::text_ops, rules::step_ops}) {
    for (const OpFacts& facts : family()) {
      const auto index = static_cast<std::size_t>(facts.kind);
      require(!present[index], "op_facts: a kind of op has two rows");
      present[index] = true;
      table[index] = facts;
    }
  }
  for (const bool there : present) require(there, "op_facts: a kind of op has no row");
  return table;
}

}  // namespace

const OpFacts& op_facts(OpKind kind) {
  static const Table table = make_table();
  const auto index = static_cast<std::size_t>(kind);
  require(index < table.size(), "op_facts: not an op kind");
  return table[index];
}

char letter_of(const char* letters, std::size_t index) {
  const std::string_view all = letters;
  return all.empty() ? '\0' : all[std::min(index, all.size() - 1)];
}

const char* op_name(OpKind kind) {
  return op_facts(kind).name;
}

bool has_side_effects(OpKind kind) {
  return op_facts(kind).side_effects;
}

bool is_exchange_wait(OpKind kind) {
  return op_facts(kind).exchange_wait;
}

double op_flops(const Graph& graph, const Op& op) {
  const OpFacts& facts = op_facts(op.kind);
  if (facts.flops == nullptr) return 0;
  Shapes in, out;
  for (const TensorId id : op.inputs) in.push_back(graph.tensor(id).shape);
  for (const TensorId id : op.outputs) out.push_back(graph.tensor(id).shape);
  return facts.flops({op.attrs, in, out});
}

}  // namespace penstock::ir
