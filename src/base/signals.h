#pragma once

#include <csignal>
#include <cstdio>
#include <string_view>

namespace penstock {

/// Opens descriptors 0, 1 and 2 to /dev/null where they are closed. To be called before anything else is
/// opened: otherwise the next file gets such a number, and what is printed is written into it.
void open_standard_descriptors();

/// Prints text and lets a stream that cannot be written be: a terminal that is gone is no reason to end a
/// run.
void say(std::FILE* stream, std::string_view text) noexcept;

/// For a program, not for a library: while it lives, the first SIGINT or SIGTERM only sets a flag, for
/// whoever asks between two steps; the second ends the process at once, as it would have without this.
/// SIGPIPE, SIGXFSZ and SIGHUP are ignored: a reader that goes, a limit on file sizes and a closed terminal
/// become errors of the write itself, or nothing. SIGBUS, of a mapped file that cannot be read, ends the
/// process with one line and exit code 1. At most one at a time; the destructor puts back what was there.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// SIGINT or SIGTERM once it has come, else 0. Any thread may ask.
  static int received();

 private:
  static constexpr int kSignals = 6;
  struct sigaction before_[kSignals] = {};
};

/// What a process that a signal ended reports: 130 for SIGINT, 143 for SIGTERM.
constexpr int exit_code_of_signal(int signal_number) {
  return 128 + signal_number;
}

}  // namespace penstock
