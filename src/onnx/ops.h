#pragma once

#include <map>
#include <string>

#include "onnx/importer.h"

namespace penstock::onnx {

/// Adds the node at hand to the network.
using OpFunction = void (*)(Importer& at);
using OpTable = std::map<std::string, OpFunction>;

// By family; each op type stands in one of them.
const OpTable& product_ops();
const OpTable& norm_ops();
const OpTable& pointwise_ops();
const OpTable& pool_ops();
const OpTable& shape_ops();

/// Null if the op type is not known.
OpFunction find_op(const std::string& op_type);

/// Kernel, strides, paddings and dilations of a convolution or pooling, with ONNX's defaults filled in.
struct Windowing {
  Extents kernel, stride, dilation, padding_begin, padding_end;
};
/// `kernel`: of the weights, or the attribute kernel_shape. auto_pad is resolved for the input's extents.
Windowing windowing(Importer& at, const Extents& x, const Extents& kernel);

}  // namespace penstock::onnx
