#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace penstock {

/// Throws UserError that names `option` unless a file can be written at `path`: its folder exists and is
/// writable, or what stands there is a device or a pipe that can be written into. Links are followed.
void check_writable(const std::string& path, const std::string& option);

/// Throws UserError that names `option` unless files can be made in the folder `path` itself, or, where there
/// is none yet, unless it can be made.
void check_writable_folder(const std::string& path, const std::string& option);

/// Writes a whole file as AtomicFile does: readers see the old one or the new one, a failure leaves nothing
/// behind. Throws UserError if no file can be made there, RunError if the disk fails.
void write_file(const std::string& path, const std::string& text);

/// Reads a whole file, or what comes out of a pipe. Throws UserError if it is missing or is more than
/// `limit_bytes`, RunError if the disk fails.
std::string read_file(const std::string& path, std::int64_t limit_bytes = 256 * kMiB);

}  // namespace penstock
