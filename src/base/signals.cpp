#include "base/signals.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/error.h"

namespace penstock {
namespace {

std::atomic<int> received_signal{0};
std::atomic<bool> installed{false};
static_assert(std::atomic<int>::is_always_lock_free);

constexpr int kStops[] = {SIGINT, SIGTERM};
constexpr int kIgnored[] = {SIGPIPE, SIGXFSZ, SIGHUP};
constexpr int kUnreadable = SIGBUS;

extern "C" void note_signal(int signal_number) {
  int none = 0;
  if (received_signal.compare_exchange_strong(none, signal_number)) return;
  // It is blocked while this runs and ends the process as soon as this returns.
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

/// Pages of a mapped file that the disk does not give: nothing that needed them can go on.
extern "C" void end_without_file(int /*signal_number*/) {
  constexpr std::string_view kLine =
      "penstock: a page of a file could not be read from the disk that is swapped to, or from the program's "
      "own; "
      "checkpoints are whole\n";
  if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) ::_exit(1);
  ::_exit(1);
}

}  // namespace

void open_standard_descriptors() {
  for (int wanted = 0; wanted <= 2; ++wanted) {
    if (::fcntl(wanted, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken; those below are open by now.
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0) throw RunError("a standard stream is closed and /dev/null cannot be opened in its place");
    require(opened == wanted, "a standard stream was opened in between");
  }
}

void say(std::FILE* stream, std::string_view text) noexcept {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (written && std::fflush(stream) == 0) return;
  std::clearerr(stream);
  // What nobody reads is not tried again at exit, where it could end the process by a signal.
  ::__fpurge(stream);
}

StopSignals::StopSignals() {
  require(!installed.exchange(true), "signals are caught already");
  received_signal = 0;
  int at = 0;
  for (const int number : kStops) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, &before_[at++]);
  }
  for (const int number : kIgnored) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    ::sigaction(number, &action, &before_[at++]);
  }
  struct sigaction action {};
  action.sa_handler = end_without_file;
  ::sigaction(kUnreadable, &action, &before_[at]);
}

StopSignals::~StopSignals() {
  int at = 0;
  for (const int number : kStops) ::sigaction(number, &before_[at++], nullptr);
  for (const int number : kIgnored) ::sigaction(number, &before_[at++], nullptr);
  ::sigaction(kUnreadable, &before_[at], nullptr);
  installed = false;
}

int StopSignals::received() {
  return received_signal.load();
}

}  // namespace penstock
