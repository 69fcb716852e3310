#include "base/error.h"
#include "kernels/cpu/request.h"

namespace penstock::kernels::cpu {
namespace {

std::shared_ptr<const Kernel> copy_kernel(const std::shared_ptr<const Engine>& engine, const MemoryDesc& from,
                                          const MemoryDesc& to) {
  const dnnl::reorder::primitive_desc desc(engine->cpu, from, engine->cpu, to, user_scratchpad());
  return std::make_shared<PrimitiveKernel>(
      engine, desc, dnnl::primitive(desc.get()),
      std::vector<Binding>{{DNNL_ARG_FROM, false, 0, from}, {DNNL_ARG_TO, true, 0, to}});
}

}  // namespace

std::shared_ptr<const Kernel> make_reorder(const std::shared_ptr<const Engine>& engine,
                                           const ir::Tensor& tensor, const ir::Layout& from,
                                           const ir::Layout& to) {
  require(tensor.dtype == ir::DType::f32, "only float32 tensors have layouts to choose from");
  MemoryDesc plain = plain_desc(tensor.shape.dims());
  if (!from.is_plain()) plain = descriptor_of(from).plain;
  if (!to.is_plain()) plain = descriptor_of(to).plain;
  return copy_kernel(engine, desc_of(from, plain), desc_of(to, plain));
}

/// A reorder from the input seen with its strides in the output's order of axes.
Selection select_transpose(const Request& request) {
  const auto& order = request.op.attrs_as<ir::TransposeAttrs>().order;
  const Dims strides = plain_desc(request.input_dims(0)).get_strides();
  Dims view;
  Dims view_strides;
  for (const std::int64_t axis : order) {
    view.push_back(request.input_dims(0)[static_cast<std::size_t>(axis)]);
    view_strides.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  Selection selection = request.plain_selection();
  selection.kernel = copy_kernel(request.engine, {view, dnnl::memory::data_type::f32, view_strides},
                                 plain_desc(request.output_dims(0)));
  return selection;
}

}  // namespace penstock::kernels::cpu
