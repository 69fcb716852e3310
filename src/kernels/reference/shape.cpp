#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

constexpr std::size_t kMaxRank = 6;
using Index = std::array<std::int64_t, kMaxRank>;

/// Calls visit(index) for each element of the shape in row-major order.
template <typename Visit>
void for_each_index(const ir::Shape& shape, Visit&& visit) {
  Index index{};
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    visit(index);
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

std::int64_t flat(const ir::Shape& shape, const Index& index) {
  std::int64_t result = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) result = result * shape[axis] + index[axis];
  return result;
}

Index shifted(Index index, const std::vector<std::int64_t>& by) {
  for (std::size_t axis = 0; axis < by.size(); ++axis) index[axis] += by[axis];
  return index;
}

/// Where each of the parts begins along the axis.
std::vector<std::int64_t> starts(const std::vector<ir::Shape>& parts, std::size_t axis) {
  std::vector<std::int64_t> result;
  std::int64_t start = 0;
  for (const ir::Shape& part : parts) {
    result.push_back(start);
    start += part[axis];
  }
  return result;
}

}  // namespace

Body concat(const Described& d) {
  const auto axis = static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis);
  return [axis, parts = d.in, whole = d.out[0], start = starts(d.in, axis)](const KernelArgs& args) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for_each_index(parts[part], [&](Index index) {
        const float value = floats_in(args, part)[flat(parts[part], index)];
        index[axis] += start[part];
        floats_out(args, 0)[flat(whole, index)] = value;
      });
    }
  };
}

Body split(const Described& d) {
  const auto axis = static_cast<std::size_t>(d.attrs<ir::AxisAttrs>().axis);
  return [axis, parts = d.out, whole = d.in[0], start = starts(d.out, axis)](const KernelArgs& args) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for_each_index(parts[part], [&](Index index) {
        const std::int64_t to = flat(parts[part], index);
        index[axis] += start[part];
        floats_out(args, part)[to] = floats_in(args, 0)[flat(whole, index)];
      });
    }
  };
}

Body pad(const Described& d) {
  return [in = d.in[0], out = d.out[0], attrs = d.attrs<ir::PadAttrs>()](const KernelArgs& args) {
    std::fill_n(floats_out(args, 0), out.elements(), attrs.value);
    for_each_index(in, [&](const Index& index) {
      floats_out(args, 0)[flat(out, shifted(index, attrs.begin))] = floats_in(args, 0)[flat(in, index)];
    });
  };
}

Body crop(const Described& d) {
  return [in = d.in[0], out = d.out[0], attrs = d.attrs<ir::PadAttrs>()](const KernelArgs& args) {
    for_each_index(out, [&](const Index& index) {
      floats_out(args, 0)[flat(out, index)] = floats_in(args, 0)[flat(in, shifted(index, attrs.begin))];
    });
  };
}

Body copy(const Described& d) {
  const auto size_bytes = static_cast<std::size_t>(d.in[0].elements() * ir::dtype_bytes(d.in_types[0]));
  return [size_bytes](const KernelArgs& args) { std::memmove(args.outputs[0], args.inputs[0], size_bytes); };
}

Body transpose(const Described& d) {
  return [in = d.in[0], out = d.out[0], order = d.attrs<ir::TransposeAttrs>().order](const KernelArgs& args) {
    for_each_index(out, [&](const Index& index) {
      Index source{};
      for (std::size_t axis = 0; axis < order.size(); ++axis)
        source[static_cast<std::size_t>(order[axis])] = index[axis];
      floats_out(args, 0)[flat(out, index)] = floats_in(args, 0)[flat(in, source)];
    });
  };
}

}  // namespace penstock::kernels::reference
