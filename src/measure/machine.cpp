#include "measure/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "memory/process.h"

namespace penstock::measure {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string machine_text() {
  std::string text = processor_name();
  if (!text.empty()) text += ", ";
  text += fmt::format("{} cores, {} of memory", std::thread::hardware_concurrency(),
                      format_bytes(machine_total_bytes()));
  utsname system{};
  if (uname(&system) == 0)
    text += fmt::format(", {} {} ({})", system.sysname, system.release, system.machine);
  return text;
}

}  // namespace penstock::measure
