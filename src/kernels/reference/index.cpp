#include <cstring>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// Calls visit(element of the part, element of the whole) for each element of a slice.
template <typename Visit>
void for_each_taken(const ir::Shape& whole, const ir::Shape& part, const ir::StridedAttrs& attrs,
                    const Visit& visit) {
  for (std::int64_t i = 0; i < part.elements(); ++i) {
    std::int64_t rest = i;
    std::int64_t stride = 1;
    std::int64_t at = 0;
    for (std::size_t axis = part.rank(); axis-- > 0;) {
      at += (attrs.begin[axis] + rest % part[axis] * attrs.step[axis]) * stride;
      rest /= part[axis];
      stride *= whole[axis];
    }
    visit(i, at);
  }
}

/// Calls visit(element of the gathered, element of the whole).
template <typename Visit>
void for_each_gathered(const ir::Shape& whole, std::size_t axis, std::int64_t count,
                       const std::int32_t* indices, const Visit& visit) {
  const std::int64_t inner = whole.elements(axis + 1, whole.rank());
  for (std::int64_t o = 0; o < whole.elements(0, axis); ++o) {
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t row = indices[k] < 0 ? indices[k] + whole[axis] : indices[k];
      for (std::int64_t i = 0; i < inner; ++i)
        visit((o * count + k) * inner + i, (o * whole[axis] + row) * inner + i);
    }
  }
}

void copy_element(const KernelArgs& args, std::int64_t to, std::int64_t from, std::int64_t bytes) {
  std::memcpy(static_cast<char*>(args.outputs[0]) + to * bytes,
              static_cast<const char*>(args.inputs[0]) + from * bytes, static_cast<std::size_t>(bytes));
}

}  // namespace

Body slice(const Described& d) {
  return [whole = d.in[0], part = d.out[0], attrs = d.attrs<ir::StridedAttrs>(),
          bytes = ir::dtype_bytes(d.in_types[0])](const KernelArgs& args) {
    for_each_taken(whole, part, attrs,
                   [&](std::int64_t i, std::int64_t at) { copy_element(args, i, at, bytes); });
  };
}

Body slice_backward(const Described& d) {
  return [whole = d.out[0], part = d.in[0], attrs = d.attrs<ir::StridedAttrs>()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < whole.elements(); ++i) floats_out(args, 0)[i] = 0;
    for_each_taken(whole, part, attrs,
                   [&](std::int64_t i, std::int64_t at) { floats_out(args, 0)[at] = floats_in(args, 0)[i]; });
  };
}

Body gather(const Described& d) {
  return [whole = d.in[0], axis = static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis),
          count = d.in[1].elements(), bytes = ir::dtype_bytes(d.in_types[0])](const KernelArgs& args) {
    for_each_gathered(whole, axis, count, static_cast<const std::int32_t*>(args.inputs[1]),
                      [&](std::int64_t i, std::int64_t at) { copy_element(args, i, at, bytes); });
  };
}

Body gather_backward(const Described& d) {
  return [whole = d.out[0], axis = static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis),
          count = d.in[1].elements()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < whole.elements(); ++i) floats_out(args, 0)[i] = 0;
    for_each_gathered(
        whole, axis, count, static_cast<const std::int32_t*>(args.inputs[1]),
        [&](std::int64_t i, std::int64_t at) { floats_out(args, 0)[at] += floats_in(args, 0)[i]; });
  };
}

Body argmax(const Described& d) {
  const auto axis = static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis);
  return [outer = d.in[0].elements(0, axis), extent = d.in[0][axis],
          inner = d.in[0].elements(axis + 1, d.in[0].rank())](const KernelArgs& args) {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const float* x = floats_in(args, 0) + o * extent * inner + i;
        std::int32_t best = 0;
        for (std::int64_t k = 1; k < extent; ++k) {
          if (x[k * inner] > x[best * inner]) best = static_cast<std::int32_t>(k);
        }
        static_cast<std::int32_t*>(args.outputs[0])[o * inner + i] = best;
      }
    }
  };
}

}  // namespace penstock::kernels::reference
