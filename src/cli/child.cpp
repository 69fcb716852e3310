#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
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
  std::vector<std::string> words{"penstock"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const int errors = ::open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const pid_t parent = ::getpid();
  process_ = nowhere < 0 || errors < 0 ? -1 : ::fork();
  if (process_ == 0) {
    // It ends with whoever has started it, however that ends.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent && ::dup2(nowhere, STDOUT_FILENO) >= 0 && ::dup2(errors, STDERR_FILENO) >= 0)
      ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  const int why = errno;
  for (const int file : {nowhere, errors}) {
    if (file >= 0) ::close(file);
  }
  if (process_ < 0) throw RunError(fmt::format("cannot start another process: {}", std::strerror(why)));
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
