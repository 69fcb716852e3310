#pragma once

#include <optional>

#include "kernels/cpu/request.h"

namespace penstock::kernels::cpu {

/// One of the three tensors of a convolution and where the op has it.
struct ConvTensor {
  MemoryDesc plain;
  bool output = false;
  std::size_t index = 0;
};

/// A convolution or transposed convolution in one of its three directions, in the library's terms.
struct ConvProblem {
  enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

  explicit ConvProblem(const Request& request);

  Direction direction = Direction::forward;
  bool transposed = false;
  bool relu = false;
  ConvTensor src, weights, dst;
  std::optional<ConvTensor> bias;
  Dims stride, dilation, padding_begin, padding_end;
  // The forward direction, which the library asks for to describe the others and looks at as long as it
  // walks their implementations.
  dnnl::convolution_forward::primitive_desc conv_hint;
  dnnl::deconvolution_forward::primitive_desc deconv_hint;

  /// The library's first implementation for these layouts; empty if there is none.
  dnnl::primitive_desc describe(const Engine& engine, const MemoryDesc& src_desc,
                                const MemoryDesc& weights_desc, const MemoryDesc& dst_desc) const;

  /// The layouts an implementation wants.
  MemoryDesc src_of(const dnnl::primitive_desc& desc) const;
  MemoryDesc weights_of(const dnnl::primitive_desc& desc) const;
  MemoryDesc dst_of(const dnnl::primitive_desc& desc) const;

  std::shared_ptr<const Kernel> make_kernel(const std::shared_ptr<const Engine>& engine,
                                            const dnnl::primitive_desc& desc) const;
};

}  // namespace penstock::kernels::cpu
