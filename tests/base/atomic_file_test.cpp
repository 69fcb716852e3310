#include "base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text_file.h"
#include "support/files/faulty_files.h"
#include "support/files/power_cut_files.h"
#include "support/files/test_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::FaultyFiles;
using testing::FileFault;
using testing::Killed;
using testing::PowerCutFiles;
using testing::TestFolder;

const std::string kOld(5000, 'o');
const std::string kNew(9000, 'n');

TEST(AtomicFile, ReplacesAndKeepsPermissions) {
  const TestFolder folder;
  write_file(folder / "a", kOld);
  EXPECT_EQ(::chmod((folder / "a").c_str(), 0640), 0);
  write_file(folder / "a", kNew);
  EXPECT_EQ(read_file(folder / "a"), kNew);
  FileStatus status;
  ASSERT_EQ(files().status_at(folder / "a", false, status), 0);
  EXPECT_EQ(status.mode, 0640U);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, ALinkStaysAndWhatItLeadsToIsReplaced) {
  const TestFolder folder;
  fs::create_directory(folder / "real");
  write_file(folder / "real/file", kOld);
  fs::create_symlink("real/file", folder / "link");
  fs::create_symlink(folder / "link", folder / "second");
  write_file(folder / "second", kNew);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "second"));
  EXPECT_EQ(read_file(folder / "real/file"), kNew);
  // A link may lead to what is not there yet.
  fs::create_symlink("real/later", folder / "ahead");
  write_file(folder / "ahead", kNew);
  EXPECT_TRUE(fs::is_symlink(folder / "ahead"));
  EXPECT_EQ(read_file(folder / "real/later"), kNew);
}

TEST(AtomicFile, ALoopOfLinksIsRefused) {
  const TestFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_THROW(write_file(folder / "a", kNew), UserError);
  EXPECT_THROW(check_writable(folder / "a", "--json"), UserError);
}

TEST(AtomicFile, DevicesAndPipesAreWrittenInto) {
  const TestFolder folder;
  // As a device, which only root could make here: a pipe.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  check_writable(folder / "pipe", "--json");
  write_file(folder / "pipe", "through");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, 7), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"pipe"});

  check_writable("/dev/null", "--json");
  write_file("/dev/null", kNew);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_symlink("/dev/null", folder / "nothing");
  write_file(folder / "nothing", kNew);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_symlink(folder / "nothing"));
}

TEST(AtomicFile, AnOpenFileOfTheProcessIsWrittenInto) {
  const TestFolder folder;
  const int file = ::open((folder / "log").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "a", 1), 1);
  write_file("/dev/fd/" + std::to_string(file), "b");
  ASSERT_EQ(::write(file, "c", 1), 1);
  ::close(file);
  EXPECT_EQ(read_file(folder / "log"), "abc");
}

TEST(AtomicFile, AFolderIsRefused) {
  const TestFolder folder;
  EXPECT_THROW(write_file(folder.path(), kNew), UserError);
  EXPECT_THROW(write_file(folder / "none/file", kNew), UserError);
  EXPECT_THROW(check_writable(folder.path(), "--json"), UserError);
  EXPECT_THROW(check_writable(folder / "none/file", "--json"), UserError);
}

TEST(AtomicFile, NamesAsLongAsTheyMayBe) {
  const TestFolder folder;
  write_file(folder / std::string(255, 'x'), kNew);
  EXPECT_EQ(folder.names(), std::vector<std::string>{std::string(255, 'x')});
}

TEST(AtomicFile, WhatADeadWriterLeftIsRemovedAndALivingOnesStays) {
  const TestFolder folder;
  std::ofstream(folder / "a.partial-0123456789abcdef") << "left";
  std::ofstream(folder / "a.partial-mine") << "not ours";
  std::ofstream(folder / "b.partial-0123456789abcdef") << "of another file";
  fs::create_symlink(folder / "b.partial-0123456789abcdef", folder / "a.partial-fedcba9876543210");
  {
    AtomicFile living(folder / "a");
    living.write("first", 5);
    write_file(folder / "a", kNew);
    living.commit();
  }
  EXPECT_EQ(read_file(folder / "a"), "first");
  const std::vector<std::string> left{"a", "a.partial-fedcba9876543210", "a.partial-mine",
                                      "b.partial-0123456789abcdef"};
  EXPECT_EQ(folder.names(), left);
}

TEST(AtomicFile, ANameThatIsThereIsNeverWrittenThrough) {
  const TestFolder folder;
  // Whoever guesses names of partial files and puts links there gets nothing written behind them, because
  // the file must be new: this is what the flags say.
  class Watch : public Files {
   public:
    int open(const std::string& path, int flags, unsigned mode) override {
      if ((flags & O_CREAT) != 0) made.insert(flags & (O_EXCL | O_NOFOLLOW));
      return Files::open(path, flags, mode);
    }
    std::set<int> made;
  } watch;
  const FilesReplaced replaced(watch);
  write_file(folder / "a", kNew);
  EXPECT_EQ(watch.made, std::set<int>{O_EXCL | O_NOFOLLOW});
}

/// Writes kNew over kOld with the given fault. What there is afterwards.
struct Outcome {
  bool failed = false;
  bool struck = false;
  std::string text;
  std::vector<std::string> names;
  std::int64_t open_files = 0;
};

Outcome write_with(const FileFault& fault) {
  const TestFolder folder;
  write_file(folder / "a", kOld);
  Outcome outcome;
  FaultyFiles faulty(fault);
  {
    const FilesReplaced replaced(faulty);
    try {
      write_file(folder / "a", kNew);
    } catch (const std::runtime_error&) {
      outcome.failed = true;
    } catch (const Killed&) {
      outcome.failed = true;
      faulty.bury();
    }
  }
  outcome.struck = faulty.struck();
  outcome.open_files = faulty.open_files();
  outcome.text = read_file(folder / "a");
  if (fault.kind == FileFault::Kind::kill) write_file(folder / "a", outcome.text);
  outcome.names = folder.names();
  return outcome;
}

TEST(AtomicFile, EveryCallThatFailsLeavesTheOldOrTheNewFileAndNothingElse) {
  for (const int error_number : {EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EROFS}) {
    for (const bool lasting : {false, true}) {
      int failures = 0;
      for (std::int64_t at = 0;; ++at) {
        const Outcome outcome = write_with({FileFault::Kind::error, at, error_number, lasting});
        if (!outcome.struck) break;
        failures += outcome.failed ? 1 : 0;
        EXPECT_TRUE(outcome.text == kNew || (outcome.failed && outcome.text == kOld)) << at;
        EXPECT_EQ(outcome.open_files, 0) << at;
        // A call that fails for good cannot be cleaned up after.
        EXPECT_TRUE(lasting || outcome.names == std::vector<std::string>{"a"}) << at;
      }
      EXPECT_GE(failures, 3) << error_number;
    }
  }
}

TEST(AtomicFile, InterruptionsAndShortCountsAreOvercome) {
  for (const FileFault::Kind kind : {FileFault::Kind::error, FileFault::Kind::short_count}) {
    for (std::int64_t at = 0;; ++at) {
      const Outcome outcome = write_with({kind, at, EINTR, false});
      if (!outcome.struck) break;
      // The look at what stands there is the one call that no signal interrupts.
      EXPECT_TRUE(!outcome.failed || outcome.text == kOld) << at;
      EXPECT_TRUE(outcome.text == (outcome.failed ? kOld : kNew)) << at;
      EXPECT_EQ(outcome.names, std::vector<std::string>{"a"}) << at;
    }
  }
}

TEST(AtomicFile, AKillAtEveryCallLeavesTheOldOrTheNewFileAndTheNextWriteCleansUp) {
  int old_files = 0;
  for (std::int64_t at = 0;; ++at) {
    const Outcome outcome = write_with({FileFault::Kind::kill, at, 0, false});
    if (!outcome.struck) break;
    EXPECT_TRUE(outcome.text == kOld || outcome.text == kNew) << at;
    EXPECT_EQ(outcome.names, std::vector<std::string>{"a"}) << at;
    old_files += outcome.text == kOld ? 1 : 0;
  }
  EXPECT_GE(old_files, 5);
}

TEST(AtomicFile, APowerCutAtEveryCallLeavesTheOldOrTheNewFile) {
  for (const PowerCutFiles::Loss loss : {PowerCutFiles::Loss::all, PowerCutFiles::Loss::bytes_only}) {
    bool struck = true;
    for (std::int64_t at = 0; struck; ++at) {
      const TestFolder folder;
      write_file(folder / "a", kOld);
      PowerCutFiles disk(folder.path());
      FaultyFiles faulty({FileFault::Kind::kill, at, 0, false}, &disk);
      bool written = false;
      {
        const FilesReplaced replaced(faulty);
        try {
          write_file(folder / "a", kNew);
          written = true;
        } catch (const Killed&) {
          faulty.bury();
        } catch (const RunError&) {
          // Dead already when it was to be told.
        }
      }
      disk.cut(loss);
      struck = faulty.struck();
      const std::string text = read_file(folder / "a");
      EXPECT_TRUE(text == kNew || (!written && text == kOld)) << at << ": " << text.size() << " bytes";
    }
  }
}

TEST(CheckWritableFolder, LooksAtTheFolderItself) {
  const TestFolder folder;
  fs::create_directory(folder / "checkpoint");
  check_writable_folder(folder / "checkpoint", "--checkpoint");
  check_writable_folder(folder / "checkpoint/", "--checkpoint");
  check_writable_folder(folder / "not/there/yet", "--checkpoint");
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(check_writable_folder(folder / "file", "--checkpoint"), UserError);
  EXPECT_THROW(check_writable_folder(folder / "file/below", "--checkpoint"), UserError);
  fs::create_symlink("nowhere", folder / "dangling");
  EXPECT_THROW(check_writable_folder(folder / "dangling", "--checkpoint"), UserError);
  // There no file can be made, whatever the permissions say.
  EXPECT_THROW(check_writable_folder("/proc/self", "--checkpoint"), UserError);
  EXPECT_THROW(check_writable_folder("/proc/not-there", "--checkpoint"), UserError);
  EXPECT_THROW(check_writable("/proc/weights", "--save"), UserError);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"checkpoint", "dangling", "file"}));
  EXPECT_TRUE(fs::is_empty(folder / "checkpoint"));
}

TEST(MakeFolders, OutlastAPowerCut) {
  const TestFolder folder;
  PowerCutFiles disk(folder.path());
  {
    const FilesReplaced replaced(disk);
    make_folders(folder / "a/b/c/");
    write_file(folder / "a/b/c/file", kNew);
  }
  disk.cut(PowerCutFiles::Loss::all);
  EXPECT_EQ(read_file(folder / "a/b/c/file"), kNew);
  write_file(folder / "plain", kOld);
  EXPECT_THROW(make_folders(folder / "plain/below"), UserError);
}

TEST(ReadFile, IsBoundedAndReadsPipes) {
  const TestFolder folder;
  write_file(folder / "a", std::string(200'000, 'a'));
  EXPECT_EQ(read_file(folder / "a").size(), 200'000U);
  EXPECT_THROW(read_file(folder / "a", 100'000), UserError);
  EXPECT_THROW(read_file("/dev/zero", 100'000), UserError);
  EXPECT_THROW(read_file(folder.path()), UserError);
  EXPECT_THROW(read_file(folder / "none"), UserError);
  FaultyFiles faulty({FileFault::Kind::error, 3, EIO, false});
  const FilesReplaced replaced(faulty);
  EXPECT_THROW(read_file(folder / "a"), RunError);
}

}  // namespace
}  // namespace penstock
