#include "base/random.h"
#include "kernels/native/pointwise_kernels.h"

namespace penstock::kernels::native {

std::shared_ptr<const Kernel> make_dropout(const ir::Shape& shape, const ir::DropoutAttrs& attrs) {
  const std::int64_t count = shape.elements();
  const std::int64_t per_sample = shape.elements(1, shape.rank());
  return make_kernel(
      [count, per_sample, attrs](const KernelArgs& args) {
        const CounterRandom random(args.step->seed, RandomPurpose::dropout, args.step->step, attrs.key);
        const std::int64_t first = (args.step->first_sample + attrs.first_sample) * per_sample;
        const float scale = 1 / (1 - attrs.probability);
        const float* x = floats_in(args, 0);
        float* y = floats_out(args, 0);
        // Elements [4 b - first, 4 b - first + 4) take the words of block b.
        const std::int64_t begin = first / 4;
        const std::int64_t end = (first + count + 3) / 4;
#pragma omp parallel for schedule(static)
        for (std::int64_t block = begin; block < end; ++block) {
          const auto words = random.block(static_cast<std::uint64_t>(block));
          for (std::int64_t i = 0; i < 4; ++i) {
            const std::int64_t at = 4 * block + i - first;
            if (at < 0 || at >= count) continue;
            const bool keep = CounterRandom::to_unit(words[static_cast<std::size_t>(i)]) >= attrs.probability;
            y[at] = keep ? x[at] * scale : 0;
          }
        }
      },
      {{0, 0}});
}

}  // namespace penstock::kernels::native
