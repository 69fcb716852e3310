#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/importer.h"

namespace penstock::onnx {

/// Adds the node at hand to the network.
using OpFunction = void (*)(Importer& at);
using OpTable = std::map<std::string, OpFunction>;

// By family; each op type stands in one of them.
const OpTable& product_ops();
const OpTable& norm_ops();
const OpTable& function_ops();
const OpTable& pointwise_ops();
const OpTable& reduce_ops();
const OpTable& pool_ops();
const OpTable& resize_ops();
const OpTable& shape_ops();
const OpTable& index_ops();
const OpTable& einsum_ops();
const OpTable& loss_ops();
const OpTable& recurrent_ops();
const OpTable& attention_ops();

/// Null if the op type is not known.
OpFunction find_op(const std::string& op_type);

/// What both broadcast to by NumPy's rule.
Extents broadcast_dims(const Importer& at, const Extents& a, const Extents& b);
/// A function of the network's elements, without a name of its own.
Value apply(Importer& at, const char* function, const std::vector<Value>& inputs,
            const std::vector<float>& parameters = {});
/// Fails where results depend on arithmetic that is coarser than float32, which is what there is.
void check_precision(Importer& at);
std::int64_t product_of(const Extents& dims, std::size_t begin, std::size_t end);
inline std::int64_t product_of(const Extents& dims) {
  return product_of(dims, 0, dims.size());
}
/// Axes that are an attribute before some opset and input 1 from it on.
std::vector<std::int64_t> axes_of(Importer& at);
/// x with axis `axis` replaced by its product with a matrix [extent, ...] of numbers that are known.
Value times_table(Importer& at, Value x, std::size_t axis, std::int64_t outputs,
                  const std::vector<double>& matrix);
/// Elements of x along an axis by places that are known.
Value picked(Importer& at, Value x, std::size_t axis, const std::vector<std::int64_t>& places);
/// 1 where index (s32) is the place along `axis` of an extent, else 0: a new or spread axis of float flags.
Value one_hot(Importer& at, Value index, std::size_t axis, std::int64_t extent);

/// Kernel, strides, paddings and dilations of a convolution or pooling, with ONNX's defaults filled in.
struct Windowing {
  Extents kernel, stride, dilation, padding_begin, padding_end;
};
/// `kernel`: of the weights, or the attribute kernel_shape. auto_pad is resolved for the input's extents.
Windowing windowing(Importer& at, const Extents& x, const Extents& kernel);

}  // namespace penstock::onnx
