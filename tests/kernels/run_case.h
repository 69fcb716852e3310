#pragma once

#include <string>
#include <vector>

#include "kernels/case_graph.h"
#include "kernels/kernel.h"
#include "kernels/op_cases.h"

namespace penstock::testing {

struct RunOptions {
  bool backward = true;   ///< the case's backward ops too
  bool in_place = false;  ///< each output takes the memory of an input wherever the kernel allows it
  int variant =
      -1;  ///< -1: the kernel that select() gave; otherwise that of Backend::variants(), or the last
};

/// An output of an op of the case that is not a workspace, in plain order.
struct CaseOutput {
  std::string op;
  std::string tensor;
  std::vector<float> values;  ///< s32 converted
};

/// Runs a graph op by op with the backend's kernels, inputs reordered into the layouts they ask for. What is
/// not written before it is read shows: outputs and scratch start as NaN.
std::vector<CaseOutput> run_graph(kernels::Backend& backend, const CaseGraph& graph,
                                  const RunOptions& options = {});

std::vector<CaseOutput> run_case(kernels::Backend& backend, const OpCase& op_case,
                                 const RunOptions& options = {});

/// The first difference larger than `tolerance` of the tensor's largest value; empty if there is none.
std::string difference(const std::vector<CaseOutput>& have, const std::vector<CaseOutput>& want,
                       double tolerance);

}  // namespace penstock::testing
