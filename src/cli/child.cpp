#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

extern char** environ;

namespace penstock::cli {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments, const std::string& folder) {
  static int children = 0;
  errors_ = fmt::format("{}/errors-{}", folder, ++children);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  std::vector<std::string> words{"penstock"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw RunError(fmt::format("cannot start another process: {}", std::strerror(failed)));
}

Child::~Child() {
  if (ended_) return;
  ::kill(process_, SIGKILL);
  while (!wait()) {
  }
}

bool Child::wait() {
  while (::waitpid(process_, &status_, WUNTRACED) < 0 && errno == EINTR) {
  }
  ended_ = !WIFSTOPPED(status_);
  return ended_;
}

void Child::resume() {
  ::kill(process_, SIGCONT);
}

ChildOutcome Child::outcome() const {
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), contents(errors_)};
}

ScratchFolder::ScratchFolder() {
  std::error_code failed;
  std::string pattern = (std::filesystem::temp_directory_path(failed) / "penstock-XXXXXX").string();
  if (failed || ::mkdtemp(pattern.data()) == nullptr) {
    throw RunError(fmt::format("cannot make a temporary folder: {}", std::strerror(errno)));
  }
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace penstock::cli
