#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

/// Resident memory of this process as the kernel counts it.
struct ProcessMemory {
  std::int64_t resident_bytes = 0;       // VmRSS
  std::int64_t peak_resident_bytes = 0;  // VmHWM
};

/// The tightest memory limit among the control groups that this process is in, v1 or v2.
struct CgroupMemory {
  std::int64_t limit_bytes = 0;
  /// Used by the group, less the page cache that the kernel can drop at once.
  std::int64_t used_bytes = 0;
};

/// Makes VmHWM start again from the present resident set; false where the kernel does not allow it.
bool reset_peak_resident();

// `root` stands for "/" and is there for tests, which lay out a tree of /proc and /sys files of their own.

ProcessMemory process_memory(const std::filesystem::path& root = "/");

/// No value: no control group limits the memory of this process.
std::optional<CgroupMemory> cgroup_memory(const std::filesystem::path& root = "/");
/// MemTotal and MemAvailable of the machine; where /proc has no such lines, what sysinfo() tells.
std::int64_t machine_total_bytes(const std::filesystem::path& root = "/");
std::int64_t machine_available_bytes(const std::filesystem::path& root = "/");

/// One line for the user if counts of the kernel's are missing here, or nothing.
std::string missing_counts(const std::filesystem::path& root = "/");

/// What this process may still take: free in the machine and in its control group, whichever is less, plus
/// what it has.
std::int64_t available_memory_bytes(const std::filesystem::path& root = "/");

/// The budget when none is named: what is available less a margin for the rest of the machine.
std::int64_t default_memory_budget(std::int64_t available_bytes);

}  // namespace penstock
