#pragma once

#include <string>

namespace penstock {

/// Throws UserError that names `option` unless a file can be made at `path` (its folder exists and is
/// writable, it is no folder).
void check_writable(const std::string& path, const std::string& option);

/// Writes a whole file: to a temporary name in the same folder, synced, then renamed, so that readers see the
/// old one or the new one and a failure leaves nothing behind. Throws RunError.
void write_file(const std::string& path, const std::string& text);

/// Reads a whole small file. Throws UserError.
std::string read_file(const std::string& path);

}  // namespace penstock
