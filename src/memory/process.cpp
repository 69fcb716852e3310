#include "memory/process.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// The number behind `key` in a file of "key value" or "Key:   value kB" lines.
std::optional<std::int64_t> field(const fs::path& file, std::string_view key) {
  std::ifstream input(file);
  std::string line;
  while (std::getline(input, line)) {
    std::istringstream words(line);
    std::string name;
    std::string unit;
    std::int64_t value = 0;
    if (words >> name && name == key && words >> value)
      return words >> unit && unit == "kB" ? value * kKiB : value;
  }
  return std::nullopt;
}

/// The only number of a file; none when there is no such file or it says "max".
std::optional<std::int64_t> number(const fs::path& file) {
  std::ifstream input(file);
  std::uint64_t value = 0;
  if (!(input >> value)) return std::nullopt;
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(value, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
}

/// What the kernel tells without /proc, in bytes.
struct SystemMemory {
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
};

SystemMemory system_memory() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return {};
  const auto unit = static_cast<std::int64_t>(info.mem_unit);
  return {static_cast<std::int64_t>(info.totalram) * unit,
          static_cast<std::int64_t>(info.freeram + info.bufferram) * unit};
}

struct Hierarchy {
  bool unified = false;
  fs::path mount;  // as seen from root
  std::string group;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// The mounted hierarchies that account memory, with this process's group in each.
std::vector<Hierarchy> memory_hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // "36 35 98:0 /root /mount/point options - type source superoptions"
    const std::size_t dash = line.find(" - ");
    const std::vector<std::string> before = split(line.substr(0, dash), ' ');
    if (dash == std::string::npos || before.size() < 5) continue;
    const std::vector<std::string> after = split(line.substr(dash + 3), ' ');
    if (after.size() < 3) continue;
    const bool unified = after[0] == "cgroup2";
    const std::vector<std::string> options = split(after[2], ',');
    const bool memory =
        after[0] == "cgroup" && std::find(options.begin(), options.end(), "memory") != options.end();
    if (!unified && !memory) continue;
    found.push_back({unified, root / fs::path(before[4]).relative_path(), ""});
  }
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "4:memory:/group" or "0::/group"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool memory = std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
    for (Hierarchy& hierarchy : found) {
      if (hierarchy.unified ? controllers.empty() : memory) hierarchy.group = line.substr(second + 1);
    }
  }
  return found;
}

std::optional<CgroupMemory> group_memory(const fs::path& group, bool unified) {
  const auto limit = number(group / (unified ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = number(group / (unified ? "memory.current" : "memory.usage_in_bytes"));
  // Without a limit v1 shows a number near 2^63.
  if (!limit || !used || *limit >= std::int64_t{1} << 60) return std::nullopt;
  const auto cache = field(group / "memory.stat", unified ? "inactive_file" : "total_inactive_file");
  return CgroupMemory{*limit, std::max<std::int64_t>(0, *used - cache.value_or(0))};
}

}  // namespace

ProcessMemory process_memory(const fs::path& root) {
  const auto resident = field(root / "proc/self/status", "VmRSS:");
  const auto peak = field(root / "proc/self/status", "VmHWM:");
  if (resident && peak) return {*resident, *peak};
  // Not every sandbox shows the file or these lines; the peak is always counted.
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const std::int64_t counted = usage.ru_maxrss * kKiB;
  return {resident.value_or(counted), std::max(peak.value_or(counted), resident.value_or(0))};
}

bool reset_peak_resident() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.flush();
  return file.good();
}

std::optional<CgroupMemory> cgroup_memory(const fs::path& root) {
  std::optional<CgroupMemory> tightest;
  for (const Hierarchy& hierarchy : memory_hierarchies(root)) {
    // In a container the group's path may name what is not visible here: the mount itself is the group then.
    fs::path group = hierarchy.mount / fs::path(hierarchy.group).relative_path();
    std::error_code ignored;
    if (!fs::exists(group, ignored)) group = hierarchy.mount;
    // A limit binds all groups below it.
    while (true) {
      const auto memory = group_memory(group, hierarchy.unified);
      if (memory && (!tightest || memory->limit_bytes - memory->used_bytes <
                                      tightest->limit_bytes - tightest->used_bytes)) {
        tightest = memory;
      }
      if (group == hierarchy.mount || group == group.parent_path()) break;
      group = group.parent_path();
    }
  }
  return tightest;
}

std::int64_t machine_total_bytes(const fs::path& root) {
  if (const auto total = field(root / "proc/meminfo", "MemTotal:")) return *total;
  return system_memory().total_bytes;
}

std::int64_t machine_available_bytes(const fs::path& root) {
  const fs::path file = root / "proc/meminfo";
  if (const auto available = field(file, "MemAvailable:")) return *available;
  // Older kernels count only what nobody uses at all.
  if (const auto unused = field(file, "MemFree:")) return *unused + field(file, "Cached:").value_or(0);
  return system_memory().free_bytes;
}

std::string missing_counts(const fs::path& root) {
  if (!field(root / "proc/meminfo", "MemTotal:")) {
    return "there is no /proc/meminfo here: the memory of the machine is what sysinfo() tells, without what "
           "caches could give back";
  }
  if (!field(root / "proc/self/status", "VmRSS:")) {
    return "/proc/self/status does not tell this process's memory here: its peak is taken instead";
  }
  return {};
}

std::int64_t available_memory_bytes(const fs::path& root) {
  std::int64_t available = machine_available_bytes(root);
  if (const auto group = cgroup_memory(root)) {
    available = std::min(available, std::max<std::int64_t>(0, group->limit_bytes - group->used_bytes));
  }
  return available + process_memory(root).resident_bytes;
}

std::int64_t default_memory_budget(std::int64_t available_bytes) {
  const std::int64_t margin = std::max(available_bytes / 20, 128 * kMiB);
  return std::max(available_bytes - margin, available_bytes / 2);
}

}  // namespace penstock
