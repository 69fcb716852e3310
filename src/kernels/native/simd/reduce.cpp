#include "kernels/native/simd/program_loops.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

constexpr std::int64_t kColumns = ReduceRun::kColumns;

struct Sum {
  static constexpr double kFirst = 0;
  static double join(double a, double b) { return a + b; }
  /// Eight sums of float32 for a few hundred elements at a time, which lose less than their result's last
  /// bit.
  static double run(const float* x, std::int64_t count, double before) {
    constexpr std::int64_t kStretch = 512;
    double total = before;
    std::int64_t i = 0;
    while (i + kLanes <= count) {
      const std::int64_t end = i + smaller(kStretch, (count - i) / kLanes * kLanes);
      F8 sums{};
      for (; i < end; i += kLanes) sums += load(x + i);
      total += static_cast<double>(sum_lanes(sums));
    }
    for (; i < count; ++i) total += static_cast<double>(x[i]);
    return total;
  }
};
struct Product {
  static constexpr double kFirst = 1;
  static double join(double a, double b) { return a * b; }
  static double run(const float* x, std::int64_t count, double before) {
    for (std::int64_t i = 0; i < count; ++i) before *= static_cast<double>(x[i]);
    return before;
  }
};
struct Largest {
  static constexpr double kFirst = -__builtin_inf();
  static double join(double a, double b) { return b > a || b != b ? b : a; }
  static double run(const float* x, std::int64_t count, double before) {
    for (std::int64_t i = 0; i < count; ++i) before = join(before, static_cast<double>(x[i]));
    return before;
  }
};
struct Smallest {
  static constexpr double kFirst = __builtin_inf();
  static double join(double a, double b) { return b < a || b != b ? b : a; }
  static double run(const float* x, std::int64_t count, double before) {
    for (std::int64_t i = 0; i < count; ++i) before = join(before, static_cast<double>(x[i]));
    return before;
  }
};

/// One thread's work on a reduction: outputs beside each other along the innermost dimension if that is kept,
/// otherwise one output at a time.
template <typename Function>
class Reducer {
 public:
  explicit Reducer(const ReduceRun& run) : run_(run), inner_(run.dims - 1), columns_(run.kept[run.dims - 1]) {
    std::int64_t stride = 1;
    for (int d = run.dims; d-- > 0;) {
      strides_[d] = stride;
      stride *= run.extents[d];
      if (!run.kept[d]) split_ = d;
    }
    tasks_ = 1;
    for (int d = 0; d < run.dims; ++d) {
      if (run.kept[d] && d != inner_) tasks_ *= run.extents[d];
    }
    blocks_ = columns_ ? (run.extents[inner_] + kColumns - 1) / kColumns : 1;
    tasks_ *= blocks_;
  }

  std::int64_t tasks() const { return tasks_ * run_.parts; }

  void work(std::int64_t task) {
    const std::int64_t part = task % run_.parts;
    std::int64_t rest = task / run_.parts;
    const std::int64_t first = rest % blocks_ * kColumns;
    rest /= blocks_;
    std::int64_t from = columns_ ? first : 0;
    std::int64_t to = columns_ ? first * run_.out_strides[inner_] : 0;
    for (int d = run_.dims; d-- > 0;) {
      if (!run_.kept[d] || d == inner_) continue;
      const std::int64_t place = rest % run_.extents[d];
      rest /= run_.extents[d];
      from += place * strides_[d];
      to += place * run_.out_strides[d];
    }
    width_ = columns_ ? smaller(kColumns, run_.extents[inner_] - first) : 1;
    for (std::int64_t i = 0; i < width_; ++i) sums_[i] = Function::kFirst;
    for (int d = 0; d < run_.dims; ++d) begin_[d] = 0, end_[d] = run_.kept[d] ? 1 : run_.extents[d];
    if (split_ >= 0) {
      const std::int64_t extent = run_.extents[split_];
      begin_[split_] = extent * part / run_.parts;
      end_[split_] = extent * (part + 1) / run_.parts;
    }
    walk(0, run_.x + from);
    for (std::int64_t i = 0; i < width_; ++i) {
      const std::int64_t at = to + (columns_ ? i * run_.out_strides[inner_] : 0);
      if (run_.parts > 1) {
        run_.partial[part * run_.outputs + at] = sums_[i];
      } else {
        finish(at, sums_[i]);
      }
    }
  }

  void finish(std::int64_t at, double value) const {
    if (run_.function == ir::Reduction::mean) value /= static_cast<double>(run_.each);
    run_.y[at] = static_cast<float>(value);
  }

 private:
  void walk(int d, const float* x) {
    if (d == inner_) {
      if (columns_) {
        for (std::int64_t i = 0; i < width_; ++i)
          sums_[i] = Function::join(sums_[i], static_cast<double>(x[i]));
      } else {
        sums_[0] = Function::run(x + begin_[d], end_[d] - begin_[d], sums_[0]);
      }
      return;
    }
    for (std::int64_t i = begin_[d]; i < end_[d]; ++i) walk(d + 1, x + i * strides_[d]);
  }

  const ReduceRun& run_;
  int inner_;
  bool columns_;
  int split_ = -1;
  std::int64_t tasks_ = 1, blocks_ = 1, width_ = 1;
  std::int64_t strides_[ReduceRun::kMaxDims] = {};
  std::int64_t begin_[ReduceRun::kMaxDims] = {};
  std::int64_t end_[ReduceRun::kMaxDims] = {};
  double sums_[kColumns];
};

template <typename Function>
void reduce_with(const ReduceRun& run) {
  const std::int64_t total = run.outputs * run.each;
#pragma omp parallel if (total > kSerial)
  {
    Reducer<Function> reducer(run);
    const Share share = my_share(reducer.tasks());
    for (std::int64_t task = share.begin; task < share.end; ++task) reducer.work(task);
    if (run.parts > 1) {
#pragma omp barrier
      const Share mine = my_share(run.outputs);
      for (std::int64_t at = mine.begin; at < mine.end; ++at) {
        double value = Function::kFirst;
        for (std::int64_t part = 0; part < run.parts; ++part)
          value = Function::join(value, run.partial[part * run.outputs + at]);
        reducer.finish(at, value);
      }
    }
  }
}

}  // namespace

void reduce(const ReduceRun& run) {
  switch (run.function) {
    case ir::Reduction::sum:
    case ir::Reduction::mean:
      return reduce_with<Sum>(run);
    case ir::Reduction::largest:
      return reduce_with<Largest>(run);
    case ir::Reduction::smallest:
      return reduce_with<Smallest>(run);
    case ir::Reduction::product:
      return reduce_with<Product>(run);
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
