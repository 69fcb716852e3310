#include "kernels/native/index_kernels.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

namespace penstock::kernels::native {
namespace {

/// Where the rows of a slice lie: a row is what it has along the last axis.
struct Strided {
  ir::Shape part;
  std::vector<std::int64_t> strides;  ///< in the whole, times the step; by axis
  std::int64_t first = 0;
  std::int64_t rows = 1, row = 1, row_stride = 1;
  std::int64_t whole_elements = 1;

  Strided(const ir::Shape& whole, const ir::Shape& sliced, const ir::StridedAttrs& attrs)
      : part(sliced), strides(whole.rank()), whole_elements(whole.elements()) {
    std::int64_t stride = 1;
    for (std::size_t i = whole.rank(); i-- > 0;) {
      strides[i] = stride * attrs.step[i];
      first += stride * attrs.begin[i];
      stride *= whole[i];
    }
    if (whole.rank() == 0) return;
    row = part[part.rank() - 1];
    row_stride = strides.back();
    rows = part.elements() / row;
  }

  /// The first element of a row in the whole.
  std::int64_t begin(std::int64_t r) const {
    std::int64_t at = first;
    for (std::size_t i = part.rank(); i-- > 1;) {
      at += r % part[i - 1] * strides[i - 1];
      r /= part[i - 1];
    }
    return at;
  }
};

template <typename T>
void copy_slice(const Strided& s, const void* x, void* y) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const T* from = static_cast<const T*>(x) + s.begin(r);
    T* to = static_cast<T*>(y) + r * s.row;
    for (std::int64_t i = 0; i < s.row; ++i) to[i] = from[i * s.row_stride];
  }
}

void check_indices(const GatherShape& shape, const std::int32_t* indices) {
  for (std::int64_t k = 0; k < shape.indices; ++k) {
    if (indices[k] >= -shape.rows && indices[k] < shape.rows) continue;
    throw RunError(fmt::format("index {} at place {} is not within the {} rows that there are", indices[k], k,
                               shape.rows));
  }
}

template <typename T>
void copy_rows(const GatherShape& s, const T* x, const std::int32_t* indices, T* y) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < s.outer * s.indices; ++r) {
    const std::int64_t index = indices[r % s.indices];
    const std::int64_t row = r / s.indices * s.rows + (index < 0 ? index + s.rows : index);
    std::memcpy(y + r * s.inner, x + row * s.inner, static_cast<std::size_t>(s.inner) * sizeof(T));
  }
}

}  // namespace

std::shared_ptr<const Kernel> make_slice(const ir::Shape& whole, const ir::Shape& part,
                                         const ir::StridedAttrs& attrs, std::int64_t element_bytes) {
  return make_kernel([s = Strided(whole, part, attrs), element_bytes](const KernelArgs& args) {
    if (element_bytes == 1) {
      copy_slice<std::uint8_t>(s, args.inputs[0], args.outputs[0]);
    } else {
      copy_slice<std::uint32_t>(s, args.inputs[0], args.outputs[0]);
    }
  });
}

std::shared_ptr<const Kernel> make_slice_backward(const ir::Shape& whole, const ir::Shape& part,
                                                  const ir::StridedAttrs& attrs) {
  return make_kernel([s = Strided(whole, part, attrs)](const KernelArgs& args) {
    const float* dy = floats_in(args, 0);
    float* dx = floats_out(args, 0);
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < s.whole_elements; ++i) dx[i] = 0;
#pragma omp for schedule(static)
      for (std::int64_t r = 0; r < s.rows; ++r) {
        float* to = dx + s.begin(r);
        for (std::int64_t i = 0; i < s.row; ++i) to[i * s.row_stride] = dy[r * s.row + i];
      }
    }
  });
}

std::shared_ptr<const Kernel> make_gather(const GatherShape& shape, std::int64_t element_bytes) {
  return make_kernel([shape, element_bytes](const KernelArgs& args) {
    const auto* indices = static_cast<const std::int32_t*>(args.inputs[1]);
    check_indices(shape, indices);
    if (element_bytes == 1) {
      copy_rows(shape, static_cast<const std::uint8_t*>(args.inputs[0]), indices,
                static_cast<std::uint8_t*>(args.outputs[0]));
    } else {
      copy_rows(shape, static_cast<const std::uint32_t*>(args.inputs[0]), indices,
                static_cast<std::uint32_t*>(args.outputs[0]));
    }
  });
}

std::shared_ptr<const Kernel> make_gather_backward(const GatherShape& shape) {
  return make_kernel([s = shape](const KernelArgs& args) {
    const float* dy = floats_in(args, 0);
    const auto* indices = static_cast<const std::int32_t*>(args.inputs[1]);
    float* dx = floats_out(args, 0);
    check_indices(s, indices);
    // Each row belongs to one thread, which goes through the indices in order: sums do not depend on threads.
    constexpr std::int64_t kStripes = 64;
#pragma omp parallel for schedule(static)
    for (std::int64_t stripe = 0; stripe < kStripes; ++stripe) {
      const std::int64_t begin = s.rows * stripe / kStripes;
      const std::int64_t end = s.rows * (stripe + 1) / kStripes;
      if (begin == end) continue;
      for (std::int64_t o = 0; o < s.outer; ++o) {
        float* rows = dx + o * s.rows * s.inner;
        for (std::int64_t i = begin * s.inner; i < end * s.inner; ++i) rows[i] = 0;
        for (std::int64_t k = 0; k < s.indices; ++k) {
          const std::int64_t row = indices[k] < 0 ? indices[k] + s.rows : indices[k];
          if (row < begin || row >= end) continue;
          const float* from = dy + (o * s.indices + k) * s.inner;
          for (std::int64_t i = 0; i < s.inner; ++i) rows[row * s.inner + i] += from[i];
        }
      }
    }
  });
}

std::shared_ptr<const Kernel> make_argmax(std::int64_t outer, std::int64_t extent, std::int64_t inner) {
  return make_kernel([=](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    auto* y = static_cast<std::int32_t*>(args.outputs[0]);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < outer * inner; ++r) {
      const float* from = x + r / inner * extent * inner + r % inner;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < extent; ++i) {
        if (from[i * inner] > from[best * inner]) best = i;
      }
      y[r] = static_cast<std::int32_t>(best);
    }
  });
}

}  // namespace penstock::kernels::native
