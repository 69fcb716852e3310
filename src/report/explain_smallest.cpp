#include "report/explain_smallest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace penstock::report {
namespace {

/// The first of those that need most.
std::size_t neediest(const plan::Problem& problem) {
  std::size_t most = 0;
  for (std::size_t i = 1; i < problem.ops.size(); ++i) {
    if (problem.ops[i].need_bytes > problem.ops[most].need_bytes) most = i;
  }
  return most;
}

std::string use_name(const plan::Problem& problem, const plan::Use& use) {
  const char* how = use.reads && use.writes ? "changes" : use.writes ? "makes" : "reads";
  return fmt::format("{} {}", how, problem.storage_name(use.storage));
}

}  // namespace

std::vector<std::string> explain_smallest(const plan::Problem& problem, std::int64_t smallest_bytes,
                                          const std::map<std::string, std::int64_t>& beside) {
  std::vector<std::string> lines;
  std::int64_t beside_bytes = 0;
  std::string parts;
  for (const auto& [tag, bytes] : beside) {
    beside_bytes += bytes;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", tag, format_bytes(bytes));
  }
  const std::size_t decides = neediest(problem);
  const plan::StepOp most = problem.ops[decides];
  const ir::Op& op = problem.graph->ops[decides];
  const std::int64_t rest_bytes = std::max<std::int64_t>(0, smallest_bytes - beside_bytes - most.need_bytes);
  lines.push_back(
      fmt::format("smallest budget {}: {} beside tensors, {} for one op, {} for rounding, gaps and the rest",
                  format_bytes(smallest_bytes), format_bytes(beside_bytes), format_bytes(most.need_bytes),
                  format_bytes(rest_bytes)));
  lines.push_back(fmt::format("beside tensors: {}", parts));
  lines.push_back(fmt::format("the op that decides: {} ({}, {})", op.name, ir::op_name(op.kind),
                              ir::phase_name(op.phase)));
  std::vector<plan::Use> uses(most.uses.begin(), most.uses.end());
  std::stable_sort(uses.begin(), uses.end(), [&](const plan::Use& a, const plan::Use& b) {
    return problem.storage(a.storage).footprint_bytes > problem.storage(b.storage).footprint_bytes;
  });
  for (const plan::Use& use : uses)
    lines.push_back(fmt::format("  {}: {}", use_name(problem, use),
                                format_bytes(problem.storage(use.storage).footprint_bytes)));
  if (most.scratch_bytes[0] > 0)
    lines.push_back(fmt::format("  scratch of its kernel: {}", format_bytes(most.scratch_bytes[0])));
  return lines;
}

}  // namespace penstock::report
