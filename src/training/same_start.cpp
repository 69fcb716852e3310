#include "training/same_start.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "dist/communicator.h"

namespace penstock::training {
namespace {

/// One text of all facts, and what it was made of.
std::string joined(const std::map<std::string, std::string>& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += fmt::format("{}\n{}\n", name, value);
  return text;
}

std::map<std::string, std::string> parted(const std::string& text) {
  std::map<std::string, std::string> facts;
  std::string name;
  bool is_name = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (is_name) {
      name = line;
    } else {
      facts[name] = line;
    }
    is_name = !is_name;
    at = end + 1;
  }
  return facts;
}

}  // namespace

void require_same_start(Ranks& ranks, const std::map<std::string, std::string>& facts) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> all = ranks.communicator().all_gather(joined(facts));
  // All have heard the same and find the same, so none waits for another.
  ranks.together([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank] == all[0]) continue;
      const std::map<std::string, std::string> first = parted(all[0]);
      for (const auto& [name, value] : parted(all[rank])) {
        const auto found = first.find(name);
        const std::string there = found == first.end() ? "none" : found->second;
        if (there == value) continue;
        throw UserError(fmt::format(
            "rank {} starts from another {} than rank 0: {} instead of {}; start all ranks with the same "
            "options and files",
            rank, name, value, there));
      }
    }
  });
}

}  // namespace penstock::training
