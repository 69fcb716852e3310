#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/input_file.h"

namespace penstock {

/// What the header of a NumPy .npy file says.
struct NpyHeader {
  /// Element type as NumPy writes it, say "<f4".
  std::string type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_offset_bytes = 0;

  std::int64_t elements() const;
};

/// Reads and checks the header: throws UserError if the file is no .npy file or its header is malformed.
NpyHeader read_npy_header(const InputFile& file);

/// Throws UserError unless the elements are of `type` (`type_name` to the user), in C order, and the file
/// holds exactly as many as the shape says.
void check_npy(const InputFile& file, const NpyHeader& header, const std::string& type,
               std::int64_t type_bytes, const std::string& type_name);

/// "[60000, 1, 28, 28]"
std::string format_shape(const std::vector<std::int64_t>& shape);

}  // namespace penstock
