#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::testing {

/// A folder of a test's own, removed with all it holds. In memory where there is such a place: sweeps sync
/// thousands of files.
class TestFolder {
 public:
  TestFolder() {
    for (const std::filesystem::path& place :
         {std::filesystem::path("/dev/shm"), std::filesystem::temp_directory_path()}) {
      path_ = (place / "penstock-test-XXXXXX").string();
      if (mkdtemp(path_.data()) != nullptr) return;
    }
    throw RunError("cannot make a temporary folder");
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// What lies in it, sorted; not what lies deeper.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

}  // namespace penstock::testing
