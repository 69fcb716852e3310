#include <gtest/gtest.h>

#include <fstream>

#include "cli/refused.h"

namespace penstock::testing {
namespace {

TEST(BadInput, UnknownNames) {
  expect_refused({"train", "resnet51", "--steps", "1"}, "resnet50");
  expect_refused({"train", "resnet-1000", "--steps", "1"}, "1001");
  expect_refused({"train", "lenet", "--steps", "1", "--no-such-option"}, "no-such-option");
  expect_refused({"fly"}, "fly");
  expect_refused({}, "--help");
  expect_refused({"train", "lenet", "--steps", "1", "--data", "nowhere"}, "nowhere");
  expect_refused({"train", "lenet", "--steps", "1", "--optimizer", "newton"}, "newton");
  expect_refused({"train", "lenet", "--steps", "1", "--schedule", "linear"}, "linear");
  expect_refused({"train", "lenet", "--steps", "1", "--policy", "magic"}, "magic");
}

TEST(BadInput, Numbers) {
  expect_refused({"train", "lenet", "--steps", "1", "--batch", "0"},
                 "--batch: '0' is not a whole number above 0;");
  expect_refused({"train", "lenet", "--steps", "1.5"}, "--steps: '1.5' is not a whole number above 0;");
  expect_refused({"train", "lenet", "--steps", "1", "--threads", "1025"}, "from 1 to 1024;");
  expect_refused({"train", "lenet", "--steps", "1", "--seed", "-1"}, "--seed: '-1' is not");
  expect_refused({"train", "lenet", "--steps", "1", "--lr", "nan"}, "--lr: 'nan' is not a number above 0;");
  expect_refused({"train", "lenet", "--steps", "1", "--momentum", "2"}, "'2' is not a number from 0 to 1;");
  expect_refused({"train", "lenet", "--steps", "1", "--clip", "inf"}, "'inf' is not a number from 0 on;");
  expect_refused({"train", "lenet", "--batch", "4"}, "--steps");
  expect_refused({"train", "lenet", "--steps", "1", "--epochs", "1"}, "--epochs");
  expect_refused({"train", "lenet", "--steps", "1", "--memory", "lots"}, "lots");
  expect_refused({"train", "alexnet", "--steps", "1", "--image-size", "16"}, "16");
}

TEST(BadInput, Files) {
  const TemporaryFolder folder;
  expect_refused({"train", "lenet", "--steps", "1", "--init", folder.file("none")}, "none");
  expect_refused({"train", "lenet", "--steps", "1", "--resume", folder.file("none")}, "none");
  expect_refused({"train", "lenet", "--steps", "1", "--json", folder.file("no/such/folder.json")}, "--json");
  expect_refused({"train", "lenet", "--steps", "1", "--save", folder.path()}, "--save");
  // Where no file can be made that is said before training, not after it.
  expect_refused({"train", "lenet", "--steps", "1", "--save", "/proc/weights"}, "--save");
  expect_refused({"train", "lenet", "--steps", "1", "--checkpoint", "/proc/folder"}, "--checkpoint");
  expect_refused({"train", "lenet", "--steps", "1", "--data", "mnist:" + folder.file("none")}, "none");
  std::ofstream(folder.file("short")) << "{}";
  expect_refused({"train", "lenet", "--steps", "1", "--init", folder.file("short")}, "short");
  EXPECT_EQ(folder.list(), std::vector<std::string>{"short"});
}

TEST(BadInput, WeightsOfAnotherNetwork) {
  const TemporaryFolder folder;
  const std::string file = folder.file("lenet.safetensors");
  ASSERT_EQ(penstock({"train", "lenet", "--steps", "1", "--batch", "4", "--quiet", "--save", file,
                      "--checkpoint", folder.file("ckpt")})
                .exit_code,
            0);
  expect_refused({"train", "resnet20", "--steps", "1", "--batch", "4", "--init", file}, "conv1.weight");
  expect_refused({"train", "lenet", "--classes", "7", "--steps", "1", "--batch", "4", "--init", file},
                 "shape");
  expect_refused({"train", "resnet20", "--steps", "1", "--batch", "4", "--resume", folder.file("ckpt")},
                 "lenet");
  expect_refused({"train", "lenet", "--steps", "2", "--batch", "8", "--resume", folder.file("ckpt")},
                 "batch of 4");
}

TEST(BadInput, DamagedCheckpoint) {
  const TemporaryFolder folder;
  const std::vector<std::string> run{"train", "lenet", "--steps", "2", "--batch", "4", "--quiet"};
  auto first = run;
  first.insert(first.end(), {"--checkpoint", folder.path()});
  ASSERT_EQ(penstock(first).exit_code, 0);
  const std::string file = folder.file("checkpoint.safetensors");
  const std::string whole = read_file(file);
  auto resume = run;
  resume.insert(resume.end(), {"--resume", folder.path()});

  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << flipped;
  expect_refused(resume, "checksum");
  std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, whole.size() / 2);
  expect_refused(resume, "checkpoint.safetensors");
}

TEST(Help, TellsWhatThereIs) {
  const Outcome help = penstock({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* word : {"train", "eval", "models", "show", "Examples"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  EXPECT_NE(penstock({"--version"}).out.find("penstock 0."), std::string::npos);
  const Outcome models = penstock({"models"});
  for (const char* name : {"lenet", "alexnet", "vgg16", "vgg19", "resnet18", "resnet152", "resnet-N",
                           "densenet121", "inception-v4", "unet", "unet3d"}) {
    EXPECT_NE(models.out.find(name), std::string::npos) << name;
  }
  EXPECT_NE(penstock({"show", "lenet"}).out.find("conv1.weight"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
