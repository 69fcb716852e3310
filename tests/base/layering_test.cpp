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
      {"plan", {"ir", "memory"}},
      {"memory", {}},
      {"tier", {}},
      {"fit", {"ir", "plan", "memory", "tier", "kernels", "lower"}},
      {"measure", {"ir", "plan", "memory", "tier", "kernels", "lower"}},
      {"run", {"ir", "plan", "fit", "memory", "tier", "kernels", "lower"}},
      {"report", {"ir", "plan", "run"}},
      {"dist", {}},
      {"data", {"ir"}},
      {"models", {"ir"}},
      {"onnx", {"ir", "models"}},
      {"session",
       {"ir", "autodiff", "kernels", "lower", "plan", "fit", "measure", "memory", "tier", "run", "report",
        "dist", "data", "models"}},
      // A client of the session: it knows neither plans nor pools.
      {"training", {"data", "dist", "models", "memory", "onnx"}},
      {"cli",
       {"ir", "plan", "report", "data", "models", "dist", "measure", "memory", "onnx", "session",
        "training"}},
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
      if (first_folder(target) == "penstock") continue;  // public types are for all
      EXPECT_TRUE(fs::exists(source / target))
          << entry.path() << " includes " << target << " by no path from src/";
      const std::string other = first_folder(target);
      EXPECT_TRUE(other == folder || other == "base" || row->second.contains(other))
          << entry.path() << " includes " << target;
    }
  }
  EXPECT_GT(includes, 50);
}

/// Options are typed once and parsed in cli/: whoever uses the library has no flags.
TEST(Layering, NoFileBelowTheCommandLineNamesAFlag) {
  const fs::path source = fs::path(PENSTOCK_SOURCE_DIR) / "src";
  const std::regex flag("\"[^\"]*(^|[ '(\"])--[a-z]");
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string folder = first_folder(fs::relative(entry.path(), source));
    const bool page = entry.path().filename() == "page.cpp";  // CSS has names that begin like flags
    if (!entry.is_regular_file() || folder == "cli" || page) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      EXPECT_FALSE(std::regex_search(line, flag)) << entry.path() << ": " << line;
  }
}

}  // namespace
}  // namespace penstock
