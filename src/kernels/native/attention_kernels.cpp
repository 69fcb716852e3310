#include <omp.h>

#include "base/random.h"
#include "ir/attention_sizes.h"
#include "kernels/native/simd/text_table.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::native {
namespace {

using ir::AttentionLayout;

/// Where the heads of a tensor lie that holds `heads` of them.
HeadSteps steps_of(AttentionLayout layout, std::int64_t heads, std::int64_t rows, std::int64_t width) {
  if (layout == AttentionLayout::heads) return {heads * rows * width, rows * width, width};
  return {heads * rows * width, width, heads * width};
}

/// 0 along axes where the mask has one element for all.
HeadSteps mask_steps(const ir::Shape& mask) {
  const auto step = [&](std::size_t axis) { return mask[axis] > 1 ? mask.elements(axis + 1, 4) : 0; };
  return {step(0), step(1), step(2)};
}

AttentionShape shape_of(const ir::AttentionAttrs& attrs, const ShapeList& in, const ir::Shape* mask,
                        bool kept_mask) {
  const ir::AttentionSizes sizes = ir::attention_sizes(attrs, in);
  AttentionShape shape;
  shape.batch = sizes.batch;
  shape.heads = sizes.heads;
  shape.kv_heads = sizes.kv_heads;
  shape.queries = sizes.queries;
  shape.keys = sizes.keys;
  shape.width = sizes.width;
  shape.y = steps_of(attrs.layout, sizes.heads, sizes.queries, sizes.width);
  if (attrs.layout == AttentionLayout::packed) {
    const std::int64_t all = sizes.heads + 2 * sizes.kv_heads;
    shape.q = shape.k = shape.v = steps_of(attrs.layout, all, sizes.queries, sizes.width);
  } else {
    shape.q = shape.y;
    shape.k = shape.v = steps_of(attrs.layout, sizes.kv_heads, sizes.keys, sizes.width);
  }
  shape.causal = attrs.causal;
  shape.scale = attrs.scale;
  shape.dropout = attrs.dropout;
  if (mask != nullptr) {
    shape.mask = kept_mask ? MaskKind::kept : MaskKind::added;
    shape.mask_steps = mask_steps(*mask);
  }
  return shape;
}

/// Pointers to queries, keys and values in one tensor or three.
template <typename T>
struct Operands {
  T *q, *k, *v;
};
template <typename T>
Operands<T> operands(const AttentionShape& shape, bool packed, T* first, T* second, T* third) {
  if (!packed) return {first, second, third};
  T* k = first + shape.heads * shape.width;
  return {first, k, k + shape.kv_heads * shape.width};
}

RandomKey random_key(const StepContext& step, std::uint32_t key) {
  const auto words = CounterRandom(step.seed, RandomPurpose::dropout, step.step, key).key();
  return {words[0], words[1], words[2], words[3]};
}

Attention make_run(const AttentionShape& shape, const ir::AttentionAttrs& attrs, int threads,
                   const KernelArgs& args) {
  Attention run;
  run.shape = shape;
  run.threads = threads;
  const auto from = operands<const float>(shape, attrs.layout == AttentionLayout::packed, floats_in(args, 0),
                                          floats_in(args, 1), floats_in(args, 2));
  run.q = from.q;
  run.k = from.k;
  run.v = from.v;
  run.scratch = static_cast<float*>(args.scratch);
  if (attrs.dropout > 0) {
    run.random = random_key(*args.step, attrs.key);
    run.first_sample = args.step->first_sample + attrs.first_sample;
  }
  return run;
}

}  // namespace

std::shared_ptr<const Kernel> make_attention(const ir::AttentionAttrs& attrs, const ShapeList& in,
                                             bool kept_mask) {
  const std::size_t operand_count = ir::attention_operands(attrs);
  const bool masked = in.size() > operand_count;
  const AttentionShape shape = shape_of(attrs, in, masked ? &in.back() : nullptr, kept_mask);
  const int threads = omp_get_max_threads();
  return make_kernel(
      [=](const KernelArgs& args) {
        Attention run = make_run(shape, attrs, threads, args);
        run.mask = masked ? args.inputs[operand_count] : nullptr;
        run.y = floats_out(args, 0);
        run.logsum = floats_out(args, 1);
        text_simd().attention(run);
      },
      {}, threads * text_simd().attention_floats(shape) * 4);
}

std::shared_ptr<const Kernel> make_attention_backward(const ir::AttentionAttrs& attrs, const ShapeList& in,
                                                      bool kept_mask) {
  const std::size_t operand_count = ir::attention_operands(attrs);
  const bool masked = in.size() > operand_count + 3;
  const AttentionShape shape = shape_of(attrs, in, masked ? &in.back() : nullptr, kept_mask);
  const int threads = omp_get_max_threads();
  return make_kernel(
      [=](const KernelArgs& args) {
        AttentionBackward back;
        back.forward = make_run(shape, attrs, threads, args);
        back.forward.mask = masked ? args.inputs[operand_count + 3] : nullptr;
        back.forward.y = const_cast<float*>(floats_in(args, operand_count));           // read only
        back.forward.logsum = const_cast<float*>(floats_in(args, operand_count + 1));  // read only
        back.dy = floats_in(args, operand_count + 2);
        const auto to = operands<float>(shape, attrs.layout == AttentionLayout::packed, floats_out(args, 0),
                                        floats_out(args, 1), floats_out(args, 2));
        back.dq = to.q;
        back.dk = to.k;
        back.dv = to.v;
        text_simd().attention_backward(back);
      },
      {}, threads * text_simd().attention_backward_floats(shape) * 4);
}

}  // namespace penstock::kernels::native
