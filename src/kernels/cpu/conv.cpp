#include <set>
#include <string_view>

#include "base/error.h"
#include "kernels/cpu/conv_problem.h"

namespace penstock::kernels::cpu {
namespace {

/// How good an implementation is to expect: generated code, a general matrix product, the plain loops.
int rank_of(const dnnl::primitive_desc& desc) {
  if (desc.get(true) == nullptr) return -1;
  const std::string_view name = desc.impl_info_str();
  if (name.find("ref") != std::string_view::npos) return 0;
  return name.find("gemm") != std::string_view::npos ? 1 : 2;
}

/// Chooses one problem's layouts and implementation.
class ConvChoice {
 public:
  ConvChoice(const Request& request, const ConvProblem& problem) : request_(request), problem_(problem) {}

  dnnl::primitive_desc choose() const {
    const Engine& engine = *request_.engine;
    const MemoryDesc any_src = any_desc(problem_.src.plain);
    const MemoryDesc any_weights = any_desc(problem_.weights.plain);
    const MemoryDesc any_dst = any_desc(problem_.dst.plain);
    dnnl::primitive_desc best = problem_.describe(engine, any_src, any_weights, any_dst);
    if (best.get(true) == nullptr || !has(problem_.src, problem_.src_of(best)) ||
        !has(problem_.dst, problem_.dst_of(best))) {
      // Reordering an activation costs more than a slightly worse implementation of the same kind.
      dnnl::primitive_desc fixed =
          problem_.describe(engine, given(problem_.src, any_src), any_weights, given(problem_.dst, any_dst));
      if (rank_of(fixed) >= rank_of(best)) best = fixed;
    }
    if (best.get(true) != nullptr && !has(problem_.weights, problem_.weights_of(best))) {
      dnnl::primitive_desc fixed = problem_.describe(
          engine, problem_.src_of(best), given(problem_.weights, any_weights), problem_.dst_of(best));
      if (fixed.get(true) != nullptr && std::string_view(fixed.impl_info_str()) == best.impl_info_str())
        best = fixed;
    }
    require(best.get(true) != nullptr, "oneDNN has no implementation of a convolution");
    return best;
  }

 private:
  bool decided(const ConvTensor& tensor) const {
    return !tensor.output && request_.given[tensor.index] != nullptr;
  }
  /// Whether the tensor needs no reorder to come as `desc`.
  bool has(const ConvTensor& tensor, const MemoryDesc& desc) const {
    return !decided(tensor) || make_layout(desc, tensor.plain) == *request_.given[tensor.index];
  }
  MemoryDesc given(const ConvTensor& tensor, const MemoryDesc& otherwise) const {
    return decided(tensor) ? desc_of(*request_.given[tensor.index], tensor.plain) : otherwise;
  }

  const Request& request_;
  const ConvProblem& problem_;
};

void put(Selection& selection, const ConvTensor& tensor, const MemoryDesc& desc) {
  (tensor.output ? selection.outputs : selection.inputs)[tensor.index] = make_layout(desc, tensor.plain);
}

}  // namespace

Selection select_conv(const Request& request) {
  if (auto native = select_native_conv(request)) return *std::move(native);
  if (auto merged = select_merged_groups(request)) return *std::move(merged);
  const ConvProblem problem(request);
  const dnnl::primitive_desc desc = ConvChoice(request, problem).choose();
  Selection selection = request.plain_selection();
  put(selection, problem.src, problem.src_of(desc));
  put(selection, problem.weights, problem.weights_of(desc));
  put(selection, problem.dst, problem.dst_of(desc));
  selection.kernel = problem.make_kernel(request.engine, desc);
  return selection;
}

Variants conv_variants(const Request& request) {
  const ConvProblem problem(request);
  const auto fixed = [&](const ConvTensor& tensor) {
    return desc_of(tensor.output ? request.output(tensor.index).layout : *request.given[tensor.index],
                   tensor.plain);
  };
  dnnl::primitive_desc desc =
      problem.describe(*request.engine, fixed(problem.src), fixed(problem.weights), fixed(problem.dst));
  Variants variants;
  std::set<std::string, std::less<>> names;
  while (desc.get(true) != nullptr) {
    if (rank_of(desc) > 0 && names.emplace(desc.impl_info_str()).second) {
      variants.push_back(problem.make_kernel(request.engine, desc));
    }
    if (!desc.next_impl()) break;
  }
  return variants;
}

}  // namespace penstock::kernels::cpu
