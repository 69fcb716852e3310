#include <fmt/format.h>

#include <array>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ir/graph.h"

namespace penstock::ir {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr std::size_t kRoles = static_cast<std::size_t>(Role::workspace) + 1;

void print_tensor(Out out, const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  fmt::format_to(out, "{} {}{}", tensor.name, dtype_name(tensor.dtype), tensor.shape.to_string());
  if (!tensor.layout.is_plain()) fmt::format_to(out, ":{}", tensor.layout.tag());
}

void print_tensors(Out out, const Graph& graph, const IdList& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) fmt::format_to(out, ", ");
    print_tensor(out, graph, ids[i]);
  }
}

void print_op(Out out, const Graph& graph, std::size_t index) {
  const Op& op = graph.ops[index];
  fmt::format_to(out, "{:>6} {:<8} {}", index, phase_name(op.phase), op_name(op.kind));
  const std::string attrs = attrs_text(op.attrs);
  if (!attrs.empty()) fmt::format_to(out, "{{{}}}", attrs);
  if (op.name != "") fmt::format_to(out, " {}", op.name);
  fmt::format_to(out, ": ");
  print_tensors(out, graph, op.inputs);
  fmt::format_to(out, " -> ");
  print_tensors(out, graph, op.outputs);
  fmt::format_to(out, "\n");
}

/// Each storage counts once, for the role of the first tensor that has it.
void print_totals(Out out, const Graph& graph) {
  std::array<std::int64_t, kRoles> bytes{};
  std::array<std::int64_t, kRoles> count{};
  const auto sizes = storage_sizes(graph);
  std::vector<bool> counted(sizes.size(), false);
  for (const Tensor& tensor : graph.tensors) {
    const auto storage = static_cast<std::size_t>(tensor.storage);
    if (counted[storage]) continue;
    counted[storage] = true;
    bytes[static_cast<std::size_t>(tensor.role)] += sizes[storage];
    ++count[static_cast<std::size_t>(tensor.role)];
  }
  for (std::size_t role = 0; role < kRoles; ++role) {
    if (count[role] == 0) continue;
    fmt::format_to(out, "{:>6} {:<16} {}\n", count[role], role_name(static_cast<Role>(role)),
                   format_bytes(bytes[role]));
  }
}

}  // namespace

void print(const Graph& graph, const std::function<void(std::string_view)>& take) {
  std::string text;
  const Out out(text);
  const auto give = [&] {
    take(text);
    text.clear();
  };
  fmt::format_to(out, "{}: {} ops, {} tensors, {} storages\n", graph.name, graph.ops.size(),
                 graph.tensors.size(), graph.storages);
  give();
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    print_op(out, graph, i);
    give();
  }
  print_totals(out, graph);
  give();
}

std::string print(const Graph& graph) {
  std::string text;
  print(graph, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace penstock::ir
