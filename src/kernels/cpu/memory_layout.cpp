#include "kernels/cpu/memory_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace penstock::kernels::cpu {
namespace {

/// One loop of the walk over memory: `extent` steps along dimension `dim`, `stride` elements apart.
struct Factor {
  std::size_t dim = 0;
  std::int64_t extent = 0;
  std::int64_t stride = 0;
  bool operator==(const Factor&) const = default;
};

/// The loops from the outermost in, without those of extent one, neighbours along one dimension joined.
std::vector<Factor> factors(const MemoryDesc& desc) {
  std::vector<Factor> list;
  const Dims blocks = desc.get_inner_blks();
  const Dims block_dims = desc.get_inner_idxs();
  Dims outer = desc.get_padded_dims();
  std::int64_t stride = 1;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const auto dim = static_cast<std::size_t>(block_dims[i]);
    list.push_back({dim, blocks[i], stride});
    outer[dim] /= blocks[i];
    stride *= blocks[i];
  }
  const Dims strides = desc.get_strides();
  for (std::size_t dim = 0; dim < outer.size(); ++dim) list.push_back({dim, outer[dim], strides[dim]});
  std::erase_if(list, [](const Factor& f) { return f.extent == 1; });
  std::stable_sort(list.begin(), list.end(),
                   [](const Factor& a, const Factor& b) { return a.stride > b.stride; });
  std::vector<Factor> joined;
  for (const Factor& f : list) {
    if (!joined.empty() && joined.back().dim == f.dim && joined.back().stride == f.extent * f.stride) {
      joined.back() = {f.dim, joined.back().extent * f.extent, f.stride};
    } else {
      joined.push_back(f);
    }
  }
  return joined;
}

/// "aBcd8b" in the library's manner; a stride that is not the dense one is written behind its letter.
std::string describe(const MemoryDesc& desc, const std::vector<Factor>& list) {
  const Dims dims = desc.get_dims();
  const Dims padded = desc.get_padded_dims();
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Factor& f = list[i];
    const auto same_dim = [&](const Factor& other) { return other.dim == f.dim; };
    const bool inner = std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), same_dim);
    const bool blocked = std::any_of(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end(), same_dim);
    const bool whole = !inner && !blocked;
    if (inner || (whole && dims[f.dim] != padded[f.dim])) text += std::to_string(f.extent);
    const char letter = static_cast<char>('a' + f.dim);
    text += blocked && !inner ? static_cast<char>(std::toupper(letter)) : letter;
    const std::int64_t dense = i + 1 == list.size() ? 1 : list[i + 1].extent * list[i + 1].stride;
    if (f.stride != dense) text += fmt::format("/{}", f.stride);
  }
  return text.empty() ? "scalar" : text;
}

}  // namespace

MemoryDesc plain_desc(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, dnnl::memory::data_type::f32, strides};
}

MemoryDesc any_desc(const MemoryDesc& desc) {
  return {desc.get_dims(), desc.get_data_type(), dnnl::memory::format_tag::any};
}

ir::Layout make_layout(const MemoryDesc& memory, const MemoryDesc& plain) {
  const std::vector<Factor> order = factors(memory);
  if (memory.get_size() == plain.get_size() && order == factors(plain)) return {};
  return {describe(memory, order), static_cast<std::int64_t>(memory.get_size()),
          std::make_shared<const Descriptor>(Descriptor{memory, plain, {}})};
}

ir::Layout make_workspace_layout(const MemoryDesc& workspace, const MemoryDesc& pooled) {
  std::string tag =
      fmt::format("pool{}:{}", workspace.get_data_type() == dnnl::memory::data_type::u8 ? 8 : 32,
                  describe(workspace, factors(workspace)));
  return {std::move(tag), static_cast<std::int64_t>(workspace.get_size()),
          std::make_shared<const Descriptor>(Descriptor{workspace, {}, pooled})};
}

const Descriptor& descriptor_of(const ir::Layout& layout) {
  require(layout.descriptor() != nullptr, "a layout that is not plain has no descriptor");
  return *static_cast<const Descriptor*>(layout.descriptor());
}

MemoryDesc desc_of(const ir::Layout& layout, const MemoryDesc& plain) {
  return layout.is_plain() ? plain : descriptor_of(layout).memory;
}

}  // namespace penstock::kernels::cpu
