#include "base/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "support/files/test_folder.h"

namespace penstock {
namespace {

/// How a child that runs `body` ends: its exit code, or 128 plus the signal.
int outcome_of(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StopSignals, TheFirstIsNotedAndTheSecondEnds) {
  for (const int number : {SIGINT, SIGTERM}) {
    EXPECT_EQ(outcome_of([&] {
                const StopSignals signals;
                if (StopSignals::received() != 0) return 1;
                std::raise(number);
                return StopSignals::received() == number ? 0 : 2;
              }),
              0);
    EXPECT_EQ(outcome_of([&] {
                const StopSignals signals;
                std::raise(number);
                std::raise(number);
                return 0;
              }),
              exit_code_of_signal(number));
    EXPECT_EQ(outcome_of([&] {
                { const StopSignals signals; }
                std::raise(number);
                return 0;
              }),
              exit_code_of_signal(number))
        << "what was there before is put back";
  }
  EXPECT_EQ(exit_code_of_signal(SIGINT), 130);
  EXPECT_EQ(exit_code_of_signal(SIGTERM), 143);
}

TEST(StopSignals, AFileLimitAndAClosedTerminalAreErrorsOfTheWrite) {
  const testing::TestFolder folder;
  EXPECT_EQ(outcome_of([&] {
              const StopSignals signals;
              const rlimit limit{10, 10};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const int file = ::open((folder / "a").c_str(), O_WRONLY | O_CREAT, 0600);
              if (::write(file, "0123456789", 10) != 10) return 1;
              if (::write(file, "x", 1) != -1 || errno != EFBIG) return 2;
              int ends[2];
              if (::pipe(ends) != 0) return 3;
              ::close(ends[0]);
              if (::write(ends[1], "x", 1) != -1 || errno != EPIPE) return 4;
              std::raise(SIGHUP);
              std::FILE* stream = ::fdopen(ends[1], "w");
              say(stream, "nobody reads this");
              // Nothing is left that would be written when the stream is closed.
              return std::fclose(stream) == 0 ? 0 : 5;
            }),
            0);
}

TEST(StopSignals, AMappedFileThatCannotBeReadEndsTheProcessWithExitCodeOne) {
  EXPECT_EQ(outcome_of([] {
              const StopSignals signals;
              std::FILE* file = std::tmpfile();
              if (file == nullptr) return 3;
              // Nothing is behind its end.
              void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, ::fileno(file), 0);
              if (page == MAP_FAILED) return 4;
              return static_cast<volatile const char*>(page)[0] == 0 ? 5 : 6;
            }),
            1);
}

TEST(StandardDescriptors, AreOpenBeforeAnyFileGetsTheirNumbers) {
  for (const int closed : {0, 1, 2}) {
    EXPECT_EQ(outcome_of([&] {
                ::close(closed);
                if (closed == 1) ::close(2);
                open_standard_descriptors();
                struct stat null {};
                struct stat now {};
                if (::stat("/dev/null", &null) != 0 || ::fstat(closed, &now) != 0) return 1;
                if (now.st_rdev != null.st_rdev) return 2;
                return ::open("/dev/null", O_RDONLY) > 2 ? 0 : 3;
              }),
              0);
  }
}

}  // namespace
}  // namespace penstock
