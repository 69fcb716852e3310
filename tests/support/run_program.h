#pragma once

#include <string>
#include <vector>

namespace penstock::testing {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs a program to its end and returns what it printed. The first argument is the program.
Outcome run_program(const std::vector<std::string>& arguments);

/// A folder that is removed, with all in it, at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Names of all files below, sorted.
  std::vector<std::string> list() const;

 private:
  std::string path_;
};

}  // namespace penstock::testing
