#include "kernels/native/copy_kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace penstock::kernels::native {
namespace {

void copy_floats(const float* from, float* to, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

/// A large copy, shared among the threads.
void copy_in_parallel(const float* from, float* to, std::int64_t count) {
  constexpr std::int64_t kPiece = 1 << 16;
#pragma omp parallel for schedule(static) if (count > kPiece)
  for (std::int64_t at = 0; at < count; at += kPiece)
    copy_floats(from + at, to + at, std::min(kPiece, count - at));
}

/// Calls f(offset in the outer tensor, offset in the inner one) for each innermost line of the box.
template <typename F>
void for_each_line(const Box& box, const F& f) {
  const std::size_t rank = box.inner.size();
  const std::int64_t lines =
      std::accumulate(box.inner.begin(), box.inner.end() - 1, std::int64_t{1}, std::multiplies<>());
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < lines; ++line) {
    std::int64_t rest = line;
    std::int64_t offset = box.begin[rank - 1];
    std::int64_t stride = box.outer[rank - 1];
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      offset += (rest % box.inner[axis] + box.begin[axis]) * stride;
      rest /= box.inner[axis];
      stride *= box.outer[axis];
    }
    f(offset, line * box.inner[rank - 1]);
  }
}

}  // namespace

std::shared_ptr<const Kernel> make_concat(std::int64_t outer, std::vector<std::int64_t> pieces) {
  const std::int64_t whole = std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0});
  return make_kernel([outer, whole, pieces = std::move(pieces)](const KernelArgs& args) {
    float* y = floats_out(args, 0);
    const auto count = static_cast<std::int64_t>(pieces.size());
    if (outer == 1) {
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        copy_in_parallel(floats_in(args, k), y, pieces[k]);
        y += pieces[k];
      }
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < outer; ++i) {
      float* to = y + i * whole;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t piece = pieces[static_cast<std::size_t>(k)];
        copy_floats(floats_in(args, static_cast<std::size_t>(k)) + i * piece, to, piece);
        to += piece;
      }
    }
  });
}

std::shared_ptr<const Kernel> make_split(std::int64_t outer, std::vector<std::int64_t> pieces) {
  const std::int64_t whole = std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0});
  return make_kernel([outer, whole, pieces = std::move(pieces)](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const auto count = static_cast<std::int64_t>(pieces.size());
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < outer; ++i) {
      const float* from = x + i * whole;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t piece = pieces[static_cast<std::size_t>(k)];
        copy_floats(from, floats_out(args, static_cast<std::size_t>(k)) + i * piece, piece);
        from += piece;
      }
    }
  });
}

std::shared_ptr<const Kernel> make_pad(const Box& box, float value) {
  const std::int64_t count =
      std::accumulate(box.outer.begin(), box.outer.end(), std::int64_t{1}, std::multiplies<>());
  return make_kernel([box, count, value](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    float* y = floats_out(args, 0);
    std::fill(y, y + count, value);
    for_each_line(box, [&](std::int64_t outer, std::int64_t inner) {
      copy_floats(x + inner, y + outer, box.inner.back());
    });
  });
}

std::shared_ptr<const Kernel> make_crop(const Box& box) {
  return make_kernel([box](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    float* y = floats_out(args, 0);
    for_each_line(box, [&](std::int64_t outer, std::int64_t inner) {
      copy_floats(x + outer, y + inner, box.inner.back());
    });
  });
}

std::shared_ptr<const Kernel> make_reshape(std::int64_t count, std::int64_t element_bytes) {
  return make_kernel(
      [count, element_bytes](const KernelArgs& args) {
        if (args.inputs[0] == args.outputs[0]) return;
        if (element_bytes == 1) {
          std::memcpy(args.outputs[0], args.inputs[0], static_cast<std::size_t>(count));
        } else {
          copy_in_parallel(floats_in(args, 0), floats_out(args, 0), count);
        }
      },
      {{0, 0}});
}

std::shared_ptr<const Kernel> make_input(int port) {
  return make_kernel([port](const KernelArgs& args) {
    require(args.step != nullptr && args.step->feed != nullptr, "a step with inputs has nobody to feed it");
    args.step->feed(port, args.outputs[0]);
  });
}

std::shared_ptr<const Kernel> make_output(int port) {
  return make_kernel([port](const KernelArgs& args) {
    if (args.step != nullptr && args.step->take != nullptr) args.step->take(port, args.inputs[0]);
  });
}

}  // namespace penstock::kernels::native
