#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace penstock {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

/// What each folder of src/ may include besides itself and base.
const std::map<std::string, Folders>& allowed() {
  static const std::map<std::string, Folders> table{
      {"base", {}},
      {"ir", {}},
      {"autodiff", {"ir"}},
      {"kernels", {"ir"}},
      {"lower", {"ir", "kernels"}},
      {"plan", {"ir"}},
      {"memory", {}},
      {"tier", {}},
      {"run", {"ir", "plan", "memory", "tier", "kernels", "lower"}},
      {"report", {"ir", "plan", "run"}},
      {"dist", {}},
      {"data", {"ir"}},
      {"models", {"ir"}},
      {"train",
       {"ir", "autodiff", "kernels", "lower", "plan", "memory", "tier", "run", "report", "dist", "data",
        "models"}},
      {"cli", {"ir", "plan", "report", "data", "models", "train"}},
  };
  return table;
}

std::string first_folder(const fs::path& path) {
  return path.begin() == path.end() ? "" : path.begin()->string();
}

TEST(Layering, EveryFolderIncludesOnlyWhatItMay) {
  const fs::path source = fs::path(PENSTOCK_SOURCE_DIR) / "src";
  const std::regex include("^\\s*#\\s*include\\s+\"([^\"]+)\"");
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string folder = first_folder(fs::relative(entry.path(), source));
    const auto row = allowed().find(folder);
    ASSERT_NE(row, allowed().end()) << "the table has no folder " << folder;
    std::ifstream file(entry.path());
    ASSERT_TRUE(file) << entry.path();
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      ++includes;
      const fs::path target = match[1].str();
      // The public header is the program's own to use, and training's to implement.
      if (target == "penstock/penstock.h" && (folder == "train" || folder == "cli")) continue;
      EXPECT_TRUE(fs::exists(source / target))
          << entry.path() << " includes " << target << " by no path from src/";
      const std::string other = first_folder(target);
      EXPECT_TRUE(other == folder || other == "base" || row->second.contains(other))
          << entry.path() << " includes " << target;
    }
  }
  EXPECT_GT(includes, 50);
}

}  // namespace
}  // namespace penstock
