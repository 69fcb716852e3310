#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// Lines of `count` elements along one axis, `stride` apart.
struct Lines {
  Lines(const ir::Shape& shape, std::size_t axis)
      : outer(shape.elements(0, axis)), count(shape[axis]), stride(shape.elements(axis + 1, shape.rank())) {}

  /// Calls visit(offset of the line's first element, number of the line).
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::int64_t line = 0; line < lines(); ++line) {
      visit(line / stride * count * stride + line % stride, line);
    }
  }
  std::int64_t lines() const { return outer * stride; }

  std::int64_t outer, count, stride;
};

/// Writes the softmax of one line; returns the logarithm of its sum of exponentials.
double softmax_line(const Lines& lines, const float* x, float* y) {
  double largest = x[0];
  for (std::int64_t i = 0; i < lines.count; ++i) largest = std::max<double>(largest, x[i * lines.stride]);
  double sum = 0;
  for (std::int64_t i = 0; i < lines.count; ++i) sum += std::exp(x[i * lines.stride] - largest);
  const double log_sum = largest + std::log(sum);
  for (std::int64_t i = 0; i < lines.count; ++i) {
    y[i * lines.stride] = static_cast<float>(std::exp(x[i * lines.stride] - log_sum));
  }
  return log_sum;
}

/// Negative: this place does not count.
std::int64_t checked(std::int32_t label, const Lines& lines) {
  require(label < lines.count, "a label is not a class of the network");
  return label;
}

std::size_t axis_of(const Described& d) {
  return static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis);
}

/// What the mean of a loss is over.
double mean_count(const Described& d) {
  const std::int64_t count = d.attrs<ir::MeanAttrs>().count;
  return static_cast<double>(count > 0 ? count : Lines(d.in[0], 1).lines());
}

const std::int32_t* labels_of(const KernelArgs& args) {
  return static_cast<const std::int32_t*>(args.inputs[1]);
}

}  // namespace

Body softmax(const Described& d) {
  return [lines = Lines(d.in[0], axis_of(d))](const KernelArgs& args) {
    lines.for_each([&](std::int64_t start, std::int64_t) {
      softmax_line(lines, floats_in(args, 0) + start, floats_out(args, 0) + start);
    });
  };
}

Body softmax_backward(const Described& d) {
  return [lines = Lines(d.in[0], axis_of(d))](const KernelArgs& args) {
    lines.for_each([&](std::int64_t start, std::int64_t) {
      const float* y = floats_in(args, 0) + start;
      const float* dy = floats_in(args, 1) + start;
      double sum = 0;
      for (std::int64_t i = 0; i < lines.count; ++i) {
        sum += static_cast<double>(y[i * lines.stride]) * dy[i * lines.stride];
      }
      for (std::int64_t i = 0; i < lines.count; ++i) {
        floats_out(args, 0)[start + i * lines.stride] =
            static_cast<float>(y[i * lines.stride] * (dy[i * lines.stride] - sum));
      }
    });
  };
}

Body log_softmax(const Described& d) {
  return [lines = Lines(d.in[0], axis_of(d))](const KernelArgs& args) {
    lines.for_each([&](std::int64_t start, std::int64_t) {
      const float* x = floats_in(args, 0) + start;
      float* y = floats_out(args, 0) + start;
      const double log_sum = softmax_line(lines, x, y);
      for (std::int64_t i = 0; i < lines.count; ++i)
        y[i * lines.stride] = static_cast<float>(x[i * lines.stride] - log_sum);
    });
  };
}

Body log_softmax_backward(const Described& d) {
  return [lines = Lines(d.in[0], axis_of(d))](const KernelArgs& args) {
    lines.for_each([&](std::int64_t start, std::int64_t) {
      const float* y = floats_in(args, 0) + start;
      const float* dy = floats_in(args, 1) + start;
      double sum = 0;
      for (std::int64_t i = 0; i < lines.count; ++i) sum += dy[i * lines.stride];
      for (std::int64_t i = 0; i < lines.count; ++i) {
        const double share = std::exp(static_cast<double>(y[i * lines.stride]));
        floats_out(args, 0)[start + i * lines.stride] =
            static_cast<float>(dy[i * lines.stride] - share * sum);
      }
    });
  };
}

Body cross_entropy(const Described& d) {
  return [lines = Lines(d.in[0], 1), count = mean_count(d)](const KernelArgs& args) {
    double loss = 0;
    lines.for_each([&](std::int64_t start, std::int64_t line) {
      const std::int64_t label = checked(labels_of(args)[line], lines);
      const double log_sum = softmax_line(lines, floats_in(args, 0) + start, floats_out(args, 1) + start);
      if (label >= 0) loss += log_sum - floats_in(args, 0)[start + label * lines.stride];
    });
    floats_out(args, 0)[0] = static_cast<float>(loss / count);
  };
}

Body cross_entropy_backward(const Described& d) {
  return [lines = Lines(d.in[0], 1), count = mean_count(d)](const KernelArgs& args) {
    lines.for_each([&](std::int64_t start, std::int64_t line) {
      const std::int64_t label = checked(labels_of(args)[line], lines);
      for (std::int64_t i = 0; i < lines.count; ++i) {
        const double gradient = floats_in(args, 0)[start + i * lines.stride] - (i == label ? 1.0 : 0.0);
        floats_out(args, 0)[start + i * lines.stride] =
            label < 0 ? 0.0F : static_cast<float>(gradient / count);
      }
    });
  };
}

Body count_correct(const Described& d) {
  return [lines = Lines(d.in[0], 1)](const KernelArgs& args) {
    std::int32_t count = args.inputs.size() > 2 ? *static_cast<const std::int32_t*>(args.inputs[2]) : 0;
    lines.for_each([&](std::int64_t start, std::int64_t line) {
      const float* x = floats_in(args, 0) + start;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < lines.count; ++i) {
        if (x[i * lines.stride] > x[best * lines.stride]) best = i;
      }
      if (best == labels_of(args)[line]) ++count;
    });
    static_cast<std::int32_t*>(args.outputs[0])[0] = count;
  };
}

}  // namespace penstock::kernels::reference
