#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Whether files in this directory live in memory (tmpfs, ramfs).
bool is_memory_filesystem(const std::string& directory);
/// Whether a file can be made there.
bool is_writable_directory(const std::string& directory);
/// Opens a new file for reading and writing that has no name, or loses it at once; readable by its owner
/// only. -1 and errno on failure.
int open_nameless_file(const std::string& directory, int extra_flags);
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
