#pragma once

#include <string>

namespace penstock {

/// Opens a new file for reading and writing that has no name, or loses it at once; readable by its owner
/// only. -1 and errno on failure.
int open_nameless_file(const std::string& directory, int extra_flags);

/// Whether files in this directory live in memory (tmpfs, ramfs).
bool is_memory_filesystem(const std::string& directory);

}  // namespace penstock
