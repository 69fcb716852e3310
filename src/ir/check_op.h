#pragma once

#include <string>

#include "ir/graph.h"

namespace penstock::ir {

/// What is wrong with the number, dtypes, shapes or attributes of one op's tensors; empty if nothing is.
std::string check_op(const Graph& graph, const Op& op);

}  // namespace penstock::ir
