#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// `outer` times: one piece of each input behind the other. `pieces`: floats of each.
std::shared_ptr<const Kernel> make_concat(std::int64_t outer, std::vector<std::int64_t> pieces);
std::shared_ptr<const Kernel> make_split(std::int64_t outer, std::vector<std::int64_t> pieces);
/// The box `inner` of a tensor of extents `outer` (row-major, as many axes), `begin` from its origin.
struct Box {
  std::vector<std::int64_t> outer, inner, begin;
};
std::shared_ptr<const Kernel> make_pad(const Box& box, float value);
std::shared_ptr<const Kernel> make_crop(const Box& box);
/// Nothing to do where x and y share memory.
std::shared_ptr<const Kernel> make_reshape(std::int64_t count, std::int64_t element_bytes);
/// Lets the caller of the step write the value of an input.
std::shared_ptr<const Kernel> make_input(int port);
/// Lets the caller of the step read the value of an output.
std::shared_ptr<const Kernel> make_output(int port);

}  // namespace penstock::kernels::native
