#include "kernels/native/rows.h"
#include "kernels/native/simd/text_loops.h"
#include "kernels/native/simd/threads.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void column_sums(const ColumnSums& sums) {
  const std::int64_t stretch = norm_stretch(sums.rows);
  const std::int64_t stretches = (sums.rows + stretch - 1) / stretch;
  const std::int64_t width = sums.width;
#pragma omp parallel if (sums.rows * width > kSerial)
  {
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < stretches; ++part) {
      float* partial = sums.partial + part * width;
      for (std::int64_t i = 0; i < width; ++i) partial[i] = 0;
      const std::int64_t end = smaller((part + 1) * stretch, sums.rows);
      for (std::int64_t row = part * stretch; row < end; ++row) {
        const float* x = sums.x + row * width;
        for (std::int64_t i = 0; i < width; ++i) partial[i] += x[i];
      }
    }
    const Share share = my_share(width, 16);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      double sum = 0;
      for (std::int64_t part = 0; part < stretches; ++part) sum += sums.partial[part * width + i];
      sums.y[i] = static_cast<float>(sum);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
