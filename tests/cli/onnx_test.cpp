#include <gtest/gtest.h>

#include <fstream>

#include "cli/refused.h"

namespace penstock::testing {
namespace {

const std::string kFiles = PENSTOCK_SOURCE_DIR "/tests/onnx/files/";

nlohmann::json train(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"train", model, "--steps", "3", "--batch", "8", "--lr", "0.05"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return penstock_json(arguments);
}

// A suite of its own, because what sanitizers add to the process is more than the budget.
TEST(BudgetOfOnnx, GivesTheSameBits) {
  const nlohmann::json all = train(kFiles + "small.onnx", {});
  const nlohmann::json swapped =
      train(kFiles + "small.onnx", {"--memory", "192MiB", "--policy", "lms", "--profile", "cached"});
  EXPECT_EQ(all.at("weights_sha256"), swapped.at("weights_sha256"));
}

TEST(OnnxCommand, TrainsWeightsInTheFileOrBesideIt) {
  const nlohmann::json all = train(kFiles + "small.onnx", {});
  EXPECT_EQ(all.at("loss").size(), 3U);
  // The same weights from a file beside the model.
  const nlohmann::json external = train(kFiles + "external.onnx", {});
  EXPECT_EQ(all.at("weights_sha256"), external.at("weights_sha256"));
}

TEST(OnnxCommand, SavesWhatItTrainedIntoAnotherFile) {
  const TemporaryFolder folder;
  const std::string out = folder.file("out.onnx");
  const nlohmann::json trained = train(kFiles + "small.onnx", {"--save", out, "--evaluate"});
  const nlohmann::json read = penstock_json({"eval", out, "--batch", "8"});
  EXPECT_EQ(trained.at("accuracy"), read.at("accuracy"));
  const nlohmann::json more = train(out, {});
  EXPECT_LT(more.at("loss")[0].get<double>(), trained.at("loss")[0].get<double>());
  // Weights beside the model go beside the new one, which so needs another folder.
  expect_refused({"train", kFiles + "external.onnx", "--steps", "1", "--batch", "4", "--quiet", "--save",
                  kFiles + "out.onnx"},
                 "another folder");
}

TEST(OnnxCommand, FrozenParametersStayAndTakeNoBackwardWork) {
  const TemporaryFolder folder;
  const std::string file = folder.file("out.safetensors");
  const std::string shown =
      penstock({"show", kFiles + "small.onnx", "--batch", "4", "--freeze", "conv*", "--freeze", "bn*"}).out;
  EXPECT_NE(shown.find("linear_backward_weights"), std::string::npos);
  EXPECT_EQ(shown.find("conv_backward"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("conv1.weight.momentum"), std::string::npos) << shown;
  // A built-in model is frozen by the same option.
  const std::string lenet = penstock({"show", "lenet", "--batch", "4", "--freeze", "conv*"}).out;
  EXPECT_EQ(lenet.find("conv_backward"), std::string::npos);
  expect_refused({"show", "lenet", "--freeze", "layer9*"}, "layer9*");
}

TEST(OnnxCommand, PlansAndShows) {
  EXPECT_EQ(penstock({"plan", kFiles + "small.onnx", "--batch", "4"}).exit_code, 0);
  EXPECT_NE(penstock({"show", kFiles + "small.onnx", "--batch", "4"}).out.find("conv2.weight"),
            std::string::npos);
}

TEST(OnnxCommand, BadFilesAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const std::string file = folder.file("bad.onnx");
  expect_refused({"train", file, "--steps", "1"}, "bad.onnx");
  std::ofstream(file) << "this is not a model";
  expect_refused({"train", file, "--steps", "1"}, "bad.onnx");
  for (const char* command : {"plan", "eval"}) expect_refused({command, file}, "bad.onnx");
  expect_refused({"show", file}, "bad.onnx");
  const std::string good = kFiles + "small.onnx";
  expect_refused({"train", good, "--steps", "1", "--loss", "guess"}, "guess");
  expect_refused({"train", "lenet", "--steps", "1", "--loss", "output"}, "cross_entropy");
  expect_refused({"train", "lenet", "--steps", "1", "--save", folder.file("out.onnx")}, "ONNX");
  expect_refused({"train", good, "--steps", "1", "--image-size", "32"}, "28 x 28");
  expect_refused({"train", good, "--steps", "1", "--freeze", "nothing*"}, "nothing*");
}

}  // namespace
}  // namespace penstock::testing
