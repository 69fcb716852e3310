#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "onnx/file_maker.h"
#include "onnx/onnx_import.h"

namespace penstock::onnx {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class HostileOnnx : public ::testing::Test {
 protected:
  HostileOnnx() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("hostile_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "inner");
    path_ = (folder_ / "inner" / "model.onnx").string();
  }
  ~HostileOnnx() override { std::filesystem::remove_all(folder_); }

  /// The one line that the file is refused with; empty if it is not.
  std::string refusal(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    try {
      load(path_);
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_THAT(text, HasSubstr("model.onnx"));
      return text;
    }
    return "";
  }
  std::string refusal(const FileMaker& file) const { return refusal(file.bytes()); }

  /// x [2, 3] times a tensor.
  static FileMaker with(const Message& weights) {
    FileMaker file;
    file.input("x", {2, 3}).weights(weights).node("Gemm", {"x", "w"}, {"y"}).output("y");
    return file;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(HostileOnnx, Cycles) {
  FileMaker file;
  file.input("x", {2, 3}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_THAT(refusal(file), HasSubstr("cycle"));
  FileMaker itself;
  itself.input("x", {2, 3}).node("Add", {"x", "a"}, {"a"}).output("a");
  EXPECT_THAT(refusal(itself), HasSubstr("cycle"));
}

TEST_F(HostileOnnx, MissingAndDoubleTensors) {
  FileMaker missing;
  missing.input("x", {2, 3}).node("Add", {"x", "nowhere"}, {"y"}).output("y");
  EXPECT_THAT(refusal(missing), HasSubstr("reads 'nowhere', which nothing makes"));
  FileMaker twice;
  twice.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).node("Tanh", {"x"}, {"y"}).output("y");
  EXPECT_THAT(refusal(twice), HasSubstr("two nodes make 'y'"));
  FileMaker no_output;
  no_output.input("x", {2, 3}).output("y");
  EXPECT_THAT(refusal(no_output), HasSubstr("'y'"));
  FileMaker none;
  EXPECT_THAT(refusal(none), HasSubstr("no output"));
  FileMaker no_inputs;
  no_inputs.input("x", {2, 3}).node("Conv", {"x"}, {"y"}).output("y");
  EXPECT_THAT(refusal(no_inputs), HasSubstr("has no input 1"));
}

TEST_F(HostileOnnx, SizesThatOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_THAT(refusal(with(floats("w", {kHuge, kHuge}, {1}))), HasSubstr("too large"));
  EXPECT_THAT(refusal(with(floats("w", {-1, 3}, {1}))), HasSubstr("extent of -1"));
  EXPECT_THAT(refusal(with(floats("w", {3, 1 << 20}, {1, 2, 3}))), HasSubstr("bytes where"));
  FileMaker input;
  input.input("x", {kHuge, kHuge}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THAT(refusal(input.bytes()), HasSubstr("too large"));
  FileMaker shape;
  shape.input("x", {2, 3})
      .weights(integers("s", {std::numeric_limits<std::int64_t>::max(), kHuge}))
      .node("Reshape", {"x", "s"}, {"y"})
      .output("y");
  EXPECT_NE(refusal(shape), "");
  FileMaker range;
  range.input("x", {2, 3})
      .weights(integers("s", {kHuge}))
      .node("ConstantOfShape", {"s"}, {"c"})
      .node("Reshape", {"x", "c"}, {"y"})
      .output("y");
  EXPECT_THAT(refusal(range), HasSubstr("too large"));
}

TEST_F(HostileOnnx, ExternalDataOutsideOfTheFolder) {
  std::ofstream(folder_ / "secret.bin", std::ios::binary) << raw({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::string outside = "outside of the folder";
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "../secret.bin", 0))), HasSubstr(outside));
  EXPECT_THAT(refusal(with(external("w", {3, 3}, (folder_ / "secret.bin").string(), 0))), HasSubstr(outside));
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "a/../../secret.bin", 0))), HasSubstr(outside));
  std::filesystem::create_symlink(folder_ / "secret.bin", folder_ / "inner" / "link.bin");
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "link.bin", 0))), HasSubstr(outside));
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "", 0))), HasSubstr(outside));
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "gone.bin", 0))), HasSubstr("missing"));
  std::filesystem::copy_file(folder_ / "secret.bin", folder_ / "inner" / "short.bin");
  EXPECT_THAT(refusal(with(external("w", {3, 3}, "short.bin", 4))), HasSubstr("beyond the end"));
  EXPECT_EQ(refusal(with(external("w", {3, 3}, "short.bin", 0))), "");
}

TEST_F(HostileOnnx, DeepNesting) {
  // Graphs within attributes of nodes within graphs: nothing follows them down.
  std::string inner;
  for (int depth = 0; depth < 20000; ++depth) {
    Message node, attribute, graph;
    attribute.text(1, "body").text(6, inner);
    node.text(4, "If").message(5, attribute);
    graph.message(1, node);
    inner = graph.bytes();
    if (inner.size() > 200000) break;
  }
  Message attribute, node;
  attribute.text(1, "then_branch").text(6, inner);
  node.text(1, "x").text(2, "y").text(4, "If").message(5, attribute);
  FileMaker file;
  file.input("x", {2, 3}).add(1, node).output("y");
  EXPECT_THAT(refusal(file), HasSubstr("(If) is not supported"));
}

TEST_F(HostileOnnx, EveryCutIsRefusedOrHarmless) {
  FileMaker file = with(floats("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const std::string whole = file.bytes();
  EXPECT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
  EXPECT_NE(refusal(whole.substr(0, whole.size() / 2)), "");
  EXPECT_NE(refusal(""), "");
}

TEST_F(HostileOnnx, EveryByteMayBeWrong) {
  const std::string whole = with(floats("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})).bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char wrong : {'\x00', '\x7F', '\xFF'}) {
      std::string bytes = whole;
      bytes[at] = wrong;
      refusal(bytes);
    }
  }
}

TEST_F(HostileOnnx, NamesThatAreNoText) {
  FileMaker file;
  file.input("x", {2, 3}).node("\x1b[31mRed\n", {"x"}, {"y"}).output("y");
  EXPECT_THAT(refusal(file), HasSubstr("is not supported"));
}

TEST_F(HostileOnnx, AxesAndIndicesOutOfRange) {
  const auto one = [](const std::string& op, const std::vector<Message>& attributes) {
    FileMaker file;
    file.input("x", {2, 3, 4}).node(op, {"x"}, {"y"}, attributes).output("y");
    return file;
  };
  EXPECT_THAT(refusal(one("Softmax", {int_attribute("axis", 7)})), HasSubstr("axis 7"));
  EXPECT_THAT(refusal(one("Flatten", {int_attribute("axis", -9)})), HasSubstr("axis"));
  EXPECT_NE(refusal(one("Transpose", {ints_attribute("perm", {0, 0, 1})})), "");
  EXPECT_NE(refusal(one("MaxPool", {ints_attribute("kernel_shape", {0})})), "");
  EXPECT_NE(refusal(one("MaxPool", {ints_attribute("kernel_shape", {2}), ints_attribute("strides", {0})})),
            "");
  EXPECT_NE(refusal(one("Split", {})), "x");
  FileMaker gather;
  gather.input("x", {2, 3}).weights(integers("i", {9})).node("Gather", {"x", "i"}, {"y"}).output("y");
  EXPECT_THAT(refusal(gather), HasSubstr("beyond"));
}

}  // namespace
}  // namespace penstock::onnx
