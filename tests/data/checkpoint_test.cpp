#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "data/checkpoint_file.h"
#include "data/files.h"
#include "support/files/faulty_files.h"
#include "support/files/power_cut_files.h"
#include "support/files/test_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::FaultyFiles;
using testing::FileFault;
using ::testing::HasSubstr;
using testing::Killed;
using testing::PowerCutFiles;
using testing::TestFolder;
using testing::user_error;

const std::vector<CheckpointTensor> kTensors{{"a.bias", {7}}, {"a.weight", {40, 30}}, {"momentum", {3, 5}}};

CheckpointHeader header_of(std::int64_t step) {
  return {step, 77, {{"learning rate", "0.1"}, {"data", "images:caf\xe9"}}};
}

float value(std::int64_t step, std::size_t tensor, std::int64_t i) {
  return static_cast<float>(step * 1000 + static_cast<std::int64_t>(tensor) * 100) +
         0.001F * static_cast<float>(i);
}

std::int64_t elements(const CheckpointTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

void write_step(const std::string& folder, std::int64_t step, int keep = 1) {
  CheckpointWriter writer(folder, header_of(step), kTensors, keep);
  for (std::size_t t = 0; t < kTensors.size(); ++t) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements(kTensors[t]); ++i) values.push_back(value(step, t, i));
    writer.append(values.data());
  }
  writer.commit();
}

/// The step of the checkpoint; fails unless all in it is of that step.
std::int64_t read_step(const std::string& folder) {
  const CheckpointReader reader = CheckpointReader::open(folder);
  const std::int64_t step = reader.header().step;
  EXPECT_EQ(reader.header().seed, 77U);
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"a.bias", "a.weight", "momentum"}));
  for (std::size_t t = 0; t < kTensors.size(); ++t) {
    std::vector<float> values(static_cast<std::size_t>(elements(kTensors[t])));
    reader.read(*reader.find(kTensors[t].name), values.data());
    for (std::int64_t i = 0; i < elements(kTensors[t]); ++i) {
      if (values[static_cast<std::size_t>(i)] != value(step, t, i)) ADD_FAILURE() << kTensors[t].name;
    }
  }
  return step;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const TestFolder folder;
  write_step(folder / "new/folder", 5);
  EXPECT_EQ(read_step(folder / "new/folder"), 5);
  EXPECT_EQ(read_step(folder / "new/folder/checkpoint.safetensors"), 5);
  const CheckpointReader reader = CheckpointReader::open(folder / "new/folder");
  EXPECT_THAT(reader.header().facts,
              ElementsAre(std::pair<const std::string, std::string>("data", "images:caf\\xe9"),
                          std::pair<const std::string, std::string>("learning rate", "0.1")));
  EXPECT_EQ(reader.find("penstock.checksums"), nullptr);
  EXPECT_THAT(changed_facts(reader.header().facts,
                            {{"learning rate", "0.2"}, {"data", "images:caf\xe9"}, {"new", ""}}),
              ElementsAre("learning rate: 0.1 before, 0.2 now"));
}

TEST(Checkpoint, EveryFlippedBitIsSeen) {
  const TestFolder folder;
  write_step(folder.path(), 5);
  const std::string path = folder / "checkpoint.safetensors";
  const std::string good = testing::read_file(path);
  int seen = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 5) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    testing::write_file(path, bad);
    try {
      EXPECT_EQ(read_step(folder.path()), 5) << bit;
      // Nothing but the spaces that fill up the header may differ unseen.
      EXPECT_TRUE(good[bit / 8] == ' ' &&
                  (bad[bit / 8] == '\n' || bad[bit / 8] == '\r' || bad[bit / 8] == '\t'))
          << "byte " << bit / 8;
    } catch (const UserError&) {
      ++seen;
    }
  }
  EXPECT_GT(seen, 5000);
}

TEST(Checkpoint, HeaderAndValuesAreOfOneFile) {
  const TestFolder folder;
  write_step(folder.path(), 1);
  const CheckpointReader reader = CheckpointReader::open(folder.path());
  write_step(folder.path(), 2);
  std::vector<float> values(7);
  reader.read(*reader.find("a.bias"), values.data());
  EXPECT_EQ(values[3], value(1, 0, 3));
  EXPECT_EQ(read_step(folder.path()), 2);
}

TEST(Checkpoint, WhatHasDivergedReplacesNothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const TestFolder folder;
    write_step(folder.path(), 1);
    try {
      CheckpointWriter writer(folder.path(), header_of(2), kTensors);
      std::vector<float> values(1200, 1.0F);
      writer.append(values.data());
      values[1199] = bad;
      writer.append(values.data());
      FAIL();
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("after step 2 'a.weight'"));
      EXPECT_THAT(error.what(), HasSubstr("the last one in"));
    }
    EXPECT_EQ(read_step(folder.path()), 1);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"checkpoint.safetensors"});
  }
}

TEST(Checkpoint, KeepsAsManyAsAsked) {
  const TestFolder folder;
  for (std::int64_t step = 10; step <= 50; step += 10) write_step(folder.path(), step, 3);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"checkpoint-30.safetensors", "checkpoint-40.safetensors",
                                      "checkpoint.safetensors"}));
  EXPECT_EQ(read_step(folder.path()), 50);
  EXPECT_EQ(read_step(folder / "checkpoint-30.safetensors"), 30);
  EXPECT_EQ(read_step(folder / "checkpoint-40.safetensors"), 40);
  // Gone on from step 30: what was ahead stays, what is behind goes.
  write_step(folder.path(), 35, 2);
  EXPECT_EQ(read_step(folder.path()), 35);
  EXPECT_EQ(read_step(folder / "checkpoint-50.safetensors"), 50);
  EXPECT_FALSE(fs::exists(folder / "checkpoint-10.safetensors"));
  // The newest is damaged: the others are named.
  testing::cut_file(folder / "checkpoint.safetensors", 900);
  EXPECT_FALSE(user_error([&] { read_step(folder.path()); }).empty());
  // The newest is gone, as where a file system without links was stopped between two names.
  fs::remove(folder / "checkpoint.safetensors");
  EXPECT_EQ(read_step(folder.path()), 50);
}

TEST(Checkpoint, NamesEarlierOnesWhereTheNewestIsDamaged) {
  const TestFolder folder;
  write_step(folder.path(), 1, 2);
  write_step(folder.path(), 2, 2);
  std::string bytes = testing::read_file(folder / "checkpoint.safetensors");
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  testing::write_file(folder / "checkpoint.safetensors", bytes);
  EXPECT_THAT(user_error([&] { read_step(folder.path()); }),
              HasSubstr("earlier ones: " + folder.path() + "/checkpoint-1."));
}

TEST(Checkpoint, ReadsTheFirstVersionAndRefusesLaterOnes) {
  const TestFolder folder;
  const auto write = [&](const std::string& format) {
    SafetensorsWriter writer(folder / "checkpoint.safetensors",
                             {{"a", "F32", {2}}, {"penstock.checksums", "I32", {2}}},
                             {{"format", format}, {"step", "3"}, {"seed", "4"}, {"model", "lenet"}});
    const float values[2] = {1, 2};
    writer.append(values, 8);
    const std::uint64_t sum = 0x50d8c2c0a2e5c1f7ULL;  // of nothing in particular
    writer.append(&sum, 8);
    writer.commit();
  };
  write("penstock-checkpoint-1");
  EXPECT_EQ(CheckpointReader::open(folder.path()).header().step, 3);
  EXPECT_EQ(CheckpointReader::open(folder.path()).header().facts.at("model"), "lenet");
  write("penstock-checkpoint-9");
  EXPECT_THAT(user_error([&] { CheckpointReader::open(folder.path()); }), HasSubstr("another version"));
  write("pt");
  EXPECT_THAT(user_error([&] { CheckpointReader::open(folder.path()); }),
              HasSubstr("not a Penstock checkpoint"));
  EXPECT_THAT(user_error([&] { CheckpointReader::open(folder / "none"); }), HasSubstr("no checkpoint"));
}

/// What writing step 2 over step 1 (kept beside it, as told) with a fault leaves.
struct Swept {
  bool failed = false;
  bool struck = false;
};

Swept write_over(const TestFolder& folder, int keep, FaultyFiles& faulty) {
  Swept swept;
  {
    const FilesReplaced replaced(faulty);
    try {
      write_step(folder.path(), 2, keep);
    } catch (const std::runtime_error&) {
      swept.failed = true;
    } catch (const Killed&) {
      swept.failed = true;
    }
  }
  faulty.bury();
  swept.struck = faulty.struck();
  return swept;
}

void expect_sound(const TestFolder& folder, const Swept& swept, std::int64_t at) {
  const std::int64_t step = read_step(folder.path());
  EXPECT_TRUE(step == 2 || (swept.failed && step == 1)) << "call " << at << " gives step " << step;
  for (const auto& [number, path] : earlier_checkpoints(folder.path()))
    EXPECT_EQ(read_step(path), number) << at;
}

TEST(CheckpointSweep, EveryCallThatFails) {
  for (const int keep : {1, 2}) {
    for (const int error_number : {EIO, ENOSPC, EPERM, EINTR}) {
      for (std::int64_t at = 0;; ++at) {
        const TestFolder folder;
        write_step(folder.path(), 1);
        FaultyFiles faulty({FileFault::Kind::error, at, error_number, false});
        const Swept swept = write_over(folder, keep, faulty);
        if (!swept.struck) break;
        expect_sound(folder, swept, at);
        for (const std::string& name : folder.names())
          EXPECT_EQ(name.find("partial"), std::string::npos) << at;
      }
    }
  }
}

TEST(CheckpointSweep, AKillAtEveryCallAndTheNextWriteCleansUp) {
  for (const int keep : {1, 2}) {
    for (std::int64_t at = 0;; ++at) {
      const TestFolder folder;
      write_step(folder.path(), 1);
      FaultyFiles faulty({FileFault::Kind::kill, at, 0, false});
      const Swept swept = write_over(folder, keep, faulty);
      if (!swept.struck) break;
      expect_sound(folder, swept, at);
      write_step(folder.path(), 3, keep);
      EXPECT_EQ(read_step(folder.path()), 3);
      for (const std::string& name : folder.names()) EXPECT_EQ(name.find("partial"), std::string::npos) << at;
    }
  }
}

TEST(CheckpointSweep, APowerCutAtEveryCall) {
  for (const int keep : {1, 2}) {
    for (const PowerCutFiles::Loss loss : {PowerCutFiles::Loss::all, PowerCutFiles::Loss::bytes_only}) {
      bool struck = true;
      for (std::int64_t at = 0; struck; ++at) {
        const TestFolder folder;
        write_step(folder.path(), 1);
        PowerCutFiles disk(folder.path());
        FaultyFiles faulty({FileFault::Kind::kill, at, 0, false}, &disk);
        const Swept swept = write_over(folder, keep, faulty);
        disk.cut(loss);
        struck = swept.struck;
        expect_sound(folder, swept, at);
      }
    }
  }
}

TEST(CheckpointSweep, EveryReadThatFailsIsAnError) {
  const TestFolder folder;
  write_step(folder.path(), 1);
  int errors = 0;
  for (std::int64_t at = 0;; ++at) {
    FaultyFiles faulty({FileFault::Kind::error, at, EIO, false});
    const FilesReplaced replaced(faulty);
    try {
      EXPECT_EQ(read_step(folder.path()), 1);
    } catch (const std::runtime_error&) {
      ++errors;
    }
    EXPECT_EQ(faulty.open_files(), 0);
    if (!faulty.struck()) break;
  }
  EXPECT_GE(errors, 6);
}

}  // namespace
}  // namespace penstock
