#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Whether a file can be made there.
bool is_writable_directory(const std::string& directory);
/// Bytes that this user can still write in the directory's file system.
std::int64_t free_disk_bytes(const std::string& directory);

/// The first of $TMPDIR, /var/tmp, /tmp and . that is a writable directory not in memory; throws UserError if
/// none is.
std::string default_swap_dir();
/// The first such directory among `candidates`.
std::string first_swap_dir(const std::vector<std::string>& candidates);

/// Throws UserError with the numbers unless the directory exists, is writable and has `needed_bytes` free.
/// Returns a warning, or nothing, as one line.
std::string check_swap_dir(const std::string& directory, std::int64_t needed_bytes);

}  // namespace penstock
