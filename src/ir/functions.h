#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace penstock::ir {

/// The program of a function that has a name in PyTorch or NumPy: "silu", "hardswish", "gelu_tanh", "add",
/// "where", "logical_and", ... `parameters` are those of PyTorch in its order (slope of leaky_relu, alpha of
/// elu, bounds of clip, ...); what is left out has PyTorch's default. Throws UserError where there is no such
/// function, or it does not take so many parameters.
Program named_function(const std::string& name, const std::vector<float>& parameters = {});

/// All names, in order.
std::vector<std::string> function_names();

}  // namespace penstock::ir
