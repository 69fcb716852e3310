#include "kernels/cpu/channel_layout.h"

#include "base/error.h"

namespace penstock::kernels::cpu {
namespace {

/// Dense strides of [N, C / block, positions..., block], in the order of the logical dimensions;
/// channels-last is block = C.
Dims dense_strides(const Dims& padded, std::int64_t block) {
  Dims strides(padded.size());
  std::int64_t stride = block;
  for (std::size_t i = padded.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= padded[i];
  }
  strides[1] = stride;
  strides[0] = stride * (padded[1] / block);
  return strides;
}

/// Strides along dimensions of extent one mean nothing.
bool same_strides(const Dims& extents, const Dims& a, const Dims& b) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<native::ChannelView> view_of(const ir::Shape& shape, const ir::Layout& layout) {
  if (shape.rank() < 2) return std::nullopt;
  native::ChannelView view{shape[0], shape[1], shape.elements(2, shape.rank()), 1, shape[1]};
  if (layout.is_plain()) return view;
  const MemoryDesc& desc = descriptor_of(layout).memory;
  const Dims padded = desc.get_padded_dims();
  const Dims blocks = desc.get_inner_blks();
  if (padded.size() != shape.rank()) return std::nullopt;
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i != 1 && padded[i] != shape[i]) return std::nullopt;
  }
  if (blocks.empty()) {
    Dims strides = dense_strides(padded, padded[1]);
    strides[1] = 1;
    if (padded[1] % 8 != 0 || !same_strides(padded, desc.get_strides(), strides)) return std::nullopt;
    view.block = padded[1];
  } else {
    if (blocks.size() != 1 || desc.get_inner_idxs()[0] != 1 || blocks[0] % 8 != 0) return std::nullopt;
    Dims extents = padded;
    extents[1] /= blocks[0];
    if (!same_strides(extents, desc.get_strides(), dense_strides(padded, blocks[0]))) return std::nullopt;
    view.block = blocks[0];
  }
  view.blocks = padded[1] / view.block;
  return view;
}

MemoryDesc desc_like(const Dims& dims, const MemoryDesc& like) {
  using Tag = dnnl::memory::format_tag;
  const Dims blocks = like.get_inner_blks();
  if (blocks.empty()) {
    const Dims strides = like.get_strides();
    if (strides[1] != 1 || dims[1] == 1) return plain_desc(dims);
    Dims channels_last = dense_strides(dims, dims[1]);
    channels_last[1] = 1;
    return {dims, dnnl::memory::data_type::f32, channels_last};
  }
  require(blocks.size() == 1 && like.get_inner_idxs()[0] == 1 && (blocks[0] == 8 || blocks[0] == 16),
          "a tensor of activations is in blocks of something else than channels");
  const bool eight = blocks[0] == 8;
  const Tag tag = dims.size() == 3   ? (eight ? Tag::aBc8b : Tag::aBc16b)
                  : dims.size() == 4 ? (eight ? Tag::aBcd8b : Tag::aBcd16b)
                                     : (eight ? Tag::aBcde8b : Tag::aBcde16b);
  return {dims, dnnl::memory::data_type::f32, tag};
}

ir::Layout layout_like(const Dims& dims, const ir::Layout& like) {
  if (like.is_plain()) return {};
  return make_layout(desc_like(dims, descriptor_of(like).memory), plain_desc(dims));
}

ir::Layout common_layout(const Request& request, std::span<const std::size_t> which) {
  for (const std::size_t i : which) {
    ir::Layout layout = request.given_or_plain(i);
    if (!layout.is_plain() && view_of(request.input(i).shape, layout)) return layout;
  }
  return {};
}

std::int64_t floats_of(const ir::Tensor& tensor, const ir::Layout& layout) {
  return layout.is_plain() ? tensor.shape.elements()
                           : layout.size_bytes() / static_cast<std::int64_t>(sizeof(float));
}

}  // namespace penstock::kernels::cpu
