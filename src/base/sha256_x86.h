#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/// Whether this processor has SHA instructions.
bool sha256_x86_available();

/// Sha256's compression of `blocks` blocks of 64 bytes with them. REQUIRES: sha256_x86_available().
void sha256_x86_compress(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks,
                         const std::uint32_t* constants);

}  // namespace penstock
