#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct ChildOutcome {
  int exit_code = -1;  ///< 128 + signal where one ended it
  std::string error;   ///< what it printed to its error output
};

/// This program, run again in a process of its own with other arguments; its ordinary output goes nowhere.
/// Killed at the end, if it still runs.
class Child {
 public:
  /// `folder`, which must outlive it, is for a file of what it says. Throws RunError if it cannot be started.
  Child(const std::vector<std::string>& arguments, const std::string& folder);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits until it ends or stops itself (see `train --take-turns`). Returns whether it has ended.
  bool wait();
  /// Lets it go on.
  void resume();
  /// Of one that has ended.
  ChildOutcome outcome() const;

 private:
  std::string errors_;
  int process_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

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
