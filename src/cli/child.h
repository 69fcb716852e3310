#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct ChildOutcome {
  int exit_code = -1;  ///< 128 + signal where one ended it
  std::string error;   ///< what it printed to its error output
};

/// Runs this program again, in a process of its own, with other arguments; its ordinary output goes nowhere.
/// `folder` is for a file of what it says. Throws RunError if it cannot be started.
ChildOutcome run_again(const std::vector<std::string>& arguments, const std::string& folder);

/// A folder in the temporary directory that is removed, with all in it, at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace penstock::cli
