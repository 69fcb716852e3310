#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "kernels/cpu/request.h"

/// Convolutions in groups of two or four channels, for which the library has no generated code: several
/// groups are merged into one of eight channels, whose weights are zero where one group would read another's
/// channels. That is up to four times the arithmetic, in generated code instead of plain loops.
namespace penstock::kernels::cpu {
namespace {

constexpr std::int64_t kMergedChannels = 8;

/// Weights [O, C / groups, k...] and, merged, [O, 8, k...].
struct MergedWeights {
  std::int64_t outputs = 0, channels = 0, taps = 0;

  std::int64_t own_floats() const { return outputs * channels * taps; }
  std::int64_t merged_floats() const { return outputs * kMergedChannels * taps; }
  /// Where an output's own channels begin among those of its merged group.
  std::int64_t first(std::int64_t output) const {
    return output % kMergedChannels / channels * channels * taps;
  }
  void merge(const float* own, float* merged) const {
    std::memset(merged, 0, static_cast<std::size_t>(merged_floats()) * sizeof(float));
    for (std::int64_t o = 0; o < outputs; ++o) {
      std::copy_n(own + o * channels * taps, channels * taps, merged + o * kMergedChannels * taps + first(o));
    }
  }
  void take_own(const float* merged, float* own) const {
    for (std::int64_t o = 0; o < outputs; ++o) {
      std::copy_n(merged + o * kMergedChannels * taps + first(o), channels * taps, own + o * channels * taps);
    }
  }
};

class MergedGroupsKernel : public Kernel {
 public:
  MergedGroupsKernel(std::shared_ptr<const Kernel> conv, std::shared_ptr<const Kernel> reorder,
                     const MergedWeights& weights, std::int64_t layout_bytes, bool gradient)
      : conv_(std::move(conv)), reorder_(std::move(reorder)), weights_(weights), gradient_(gradient) {
    plain_at_ = round_up(std::max(conv_->scratch_bytes(), reorder_->scratch_bytes()), 64);
    blocked_at_ = plain_at_ + round_up(weights.merged_floats() * 4, 64);
    scratch_bytes_ = blocked_at_ + round_up(layout_bytes, 64);
  }

  void run(const KernelArgs& args) const override {
    auto* scratch = static_cast<char*>(args.scratch);
    auto* plain = reinterpret_cast<float*>(scratch + plain_at_);
    void* blocked = scratch + blocked_at_;
    std::vector<const void*> inputs(args.inputs.begin(), args.inputs.end());
    std::vector<void*> outputs(args.outputs.begin(), args.outputs.end());
    if (gradient_) {
      outputs[0] = blocked;
      conv_->run({inputs, outputs, scratch, args.step});
      copy(blocked, plain, args);
      weights_.take_own(plain, static_cast<float*>(args.outputs[0]));
    } else {
      weights_.merge(static_cast<const float*>(args.inputs[1]), plain);
      copy(plain, blocked, args);
      inputs[1] = blocked;
      conv_->run({inputs, outputs, scratch, args.step});
    }
  }
  std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return "merged:" + conv_->implementation(); }

 private:
  void copy(const void* from, void* to, const KernelArgs& args) const {
    const void* const inputs[] = {from};
    void* const outputs[] = {to};
    reorder_->run({inputs, outputs, args.scratch, args.step});
  }

  std::shared_ptr<const Kernel> conv_, reorder_;
  MergedWeights weights_;
  bool gradient_;
  std::int64_t plain_at_ = 0, blocked_at_ = 0, scratch_bytes_ = 0;
};

}  // namespace

std::optional<Selection> select_merged_groups(const Request& request) {
  using ir::OpKind;
  const bool gradient = request.op.kind == OpKind::conv_backward_weights;
  if (!gradient && request.op.kind != OpKind::conv && request.op.kind != OpKind::conv_backward_data)
    return std::nullopt;
  auto attrs = request.op.attrs_as<ir::ConvAttrs>();
  const ir::TensorId weights_id = gradient ? request.op.outputs[0] : request.op.inputs[1];
  const ir::Shape& shape = request.graph.tensor(weights_id).shape;
  const std::int64_t channels = shape[1];
  if (attrs.groups == 1 || (channels != 2 && channels != 4) || shape[0] != attrs.groups * channels ||
      shape[0] % kMergedChannels != 0) {
    return std::nullopt;
  }
  ir::Graph graph = {};
  graph.tensors = request.graph.tensors;
  graph.tensor(weights_id).shape.set(1, kMergedChannels);
  ir::Op op = request.op;
  attrs.groups = shape[0] / kMergedChannels;
  op.attrs = attrs;
  std::vector<const ir::Layout*> given(request.given.begin(), request.given.end());
  if (!gradient) given[1] = nullptr;
  Selection selection = select_conv({graph, op, given, request.engine});
  if (selection.kernel->implementation().find("gemm") != std::string::npos) return std::nullopt;
  ir::Layout& layout = gradient ? selection.outputs[0] : selection.inputs[1];
  const ir::Layout plain;
  ir::Tensor merged = graph.tensor(weights_id);
  merged.layout = layout;
  const auto reorder = gradient ? make_reorder(request.engine, merged, layout, plain)
                                : make_reorder(request.engine, merged, plain, layout);
  const MergedWeights weights{shape[0], channels, shape.elements(2, shape.rank())};
  selection.kernel =
      std::make_shared<MergedGroupsKernel>(selection.kernel, reorder, weights, merged.size_bytes(), gradient);
  layout = plain;
  return selection;
}

}  // namespace penstock::kernels::cpu
