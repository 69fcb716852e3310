#include <fmt/format.h>

#include <algorithm>

#include "models/builder_impl.h"

namespace penstock {
namespace {

/// The leading extents that both broadcast to; empty and `fits` false if they do not.
Extents broadcast_leading(const ir::Shape& a, const ir::Shape& b, bool& fits) {
  Extents x(a.dims().begin(), a.dims().end() - 2);
  Extents y(b.dims().begin(), b.dims().end() - 2);
  if (x.size() < y.size()) x.insert(x.begin(), y.size() - x.size(), 1);
  if (y.size() < x.size()) y.insert(y.begin(), x.size() - y.size(), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    fits &= x[i] == y[i] || x[i] == 1 || y[i] == 1;
    x[i] = std::max(x[i], y[i]);
  }
  return x;
}

ir::Shape with_leading(Extents leading, const ir::Shape& matrix) {
  leading.insert(leading.end(), matrix.dims().end() - 2, matrix.dims().end());
  return ir::Shape(leading);
}

}  // namespace

Value NetworkBuilder::matmul(Value a, Value b, const MatmulOptions& options, const std::string& name) {
  const ir::MatmulAttrs attrs{options.transpose_a, options.transpose_b, options.scale};
  if (impl_->shape(a).rank() == impl_->shape(b).rank() && impl_->shape(a).rank() >= 2) {
    const std::size_t leading = impl_->shape(a).rank() - 2;
    if (std::equal(impl_->shape(a).dims().begin(),
                   impl_->shape(a).dims().begin() + static_cast<std::ptrdiff_t>(leading),
                   impl_->shape(b).dims().begin())) {
      return impl_->make(ir::OpKind::matmul, impl_->layer_name(name, a, "matmul"), {a, b}, attrs);
    }
  }
  const std::string layer = impl_->layer_name(name, a, "matmul");
  const bool row = impl_->shape(a).rank() == 1;
  const bool column = impl_->shape(b).rank() == 1;
  if ((row && attrs.transpose_a) || (column && attrs.transpose_b))
    throw UserError(fmt::format("layer {}: a vector cannot be transposed", layer));
  if (row) a = reshape(a, {1, impl_->shape(a)[0]});
  if (column) b = reshape(b, {impl_->shape(b)[0], 1});
  Value y;
  if (impl_->shape(b).rank() == 2 && !attrs.transpose_a) {
    // One product of all rows of a, without copies of b.
    const ir::Shape in = impl_->shape(a);
    const std::int64_t width = in[in.rank() - 1];
    y = impl_->make(ir::OpKind::matmul, layer + ".rows", {reshape(a, {in.elements() / width, width}), b},
                    attrs);
    Extents out = in.dims();
    out.back() = impl_->shape(y)[1];
    y = reshape(y, out);
  } else {
    bool fits = true;
    const Extents leading = broadcast_leading(impl_->shape(a), impl_->shape(b), fits);
    if (!fits) {
      throw UserError(fmt::format("layer {}: the leading extents of {} and {} do not broadcast", layer,
                                  impl_->shape(a).to_string(), impl_->shape(b).to_string()));
    }
    const auto whole = [&](Value x) {
      const ir::Shape to = with_leading(leading, impl_->shape(x));
      return impl_->shape(x) == to ? x : expand(x, to.dims());
    };
    y = impl_->make(ir::OpKind::matmul, layer + ".broadcast", {whole(a), whole(b)}, attrs);
  }
  if (!row && !column) return y;
  Extents out = impl_->shape(y).dims();
  if (column) out.pop_back();
  if (row) out.erase(out.end() - (column ? 1 : 2));
  if (out.empty()) out.push_back(1);
  return reshape(y, out);
}

}  // namespace penstock
