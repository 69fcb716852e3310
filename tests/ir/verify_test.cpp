#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/graph.h"

namespace penstock::ir {
namespace {

using ::testing::HasSubstr;

/// x -> relu -> y; y, w -> linear -> z; w is updated in place.
struct Sample {
  Sample() {
    graph.name = "sample";
    const TensorId images = graph.add_input("images", DType::f32, {4, 3});
    const TensorId labels = graph.add_input("labels", DType::s32, {4});
    w = graph.add_state("w", {5, 3}, Role::parameter, {});
    y = graph.add_tensor("y", DType::f32, {4, 3}, Role::activation);
    graph.add_op({OpKind::activation, Phase::forward, "relu", {images}, {y}, ActivationAttrs{}});
    z = graph.add_tensor("z", DType::f32, {4, 5}, Role::activation);
    graph.add_op({OpKind::linear, Phase::forward, "linear", {y, w}, {z}, LinearAttrs{}});
    loss = graph.add_tensor("loss", DType::f32, {1}, Role::activation);
    p = graph.add_tensor("p", DType::f32, {4, 5}, Role::activation);
    graph.add_op({OpKind::cross_entropy, Phase::forward, "loss", {z, labels}, {loss, p}, MeanAttrs{}});
    graph.loss = loss;
    graph.add_output("loss", loss);
    dw = graph.add_tensor("w.grad", DType::f32, {5, 3}, Role::gradient);
    graph.add_op({OpKind::linear_backward_weights, Phase::backward, "linear", {y, p}, {dw}, LinearAttrs{}});
    updated = graph.add_successor(w, "w.updated");
    graph.add_op({OpKind::sgd_update, Phase::update, "update", {w, dw}, {updated}, SgdAttrs{}});
    graph.replace_carried(w, updated);
  }

  std::string problem() const {
    try {
      verify(graph);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  }
  Op& op(const std::string& name) {
    for (Op& op : graph.ops) {
      if (op.name == name) return op;
    }
    throw InternalError("no op " + name);
  }

  Graph graph;
  TensorId w, y, z, loss, p, dw, updated;
};

TEST(Verify, AcceptsASoundGraph) {
  EXPECT_EQ(Sample().problem(), "");
}

TEST(Verify, RejectsAReadBeforeTheWrite) {
  Sample sample;
  std::swap(sample.graph.ops[2], sample.graph.ops[3]);
  EXPECT_THAT(sample.problem(), HasSubstr("reads y, which nothing wrote before"));
}

TEST(Verify, RejectsATensorWrittenTwice) {
  Sample sample;
  sample.graph.ops.push_back(sample.graph.ops[2]);
  EXPECT_THAT(sample.problem(), HasSubstr("writes y, which was written before"));
}

TEST(Verify, RejectsAWrongProducer) {
  Sample sample;
  sample.graph.tensor(sample.y).producer = 3;
  EXPECT_THAT(sample.problem(), HasSubstr("is not the producer of its output y"));
}

TEST(Verify, RejectsATensorThatDoesNotExist) {
  Sample sample;
  sample.op("relu").inputs[0] = 99;
  EXPECT_THAT(sample.problem(), HasSubstr("an input does not exist"));
  Sample other;
  other.op("relu").outputs[0] = kNone;
  EXPECT_THAT(other.problem(), HasSubstr("an output does not exist"));
}

TEST(Verify, RejectsAWrongNumberOfTensors) {
  Sample sample;
  sample.op("linear").inputs.pop_back();
  EXPECT_THAT(sample.problem(), HasSubstr("does not take 1 inputs"));
  Sample other;
  other.op("update").outputs.push_back(other.y);
  EXPECT_THAT(other.problem(), HasSubstr("2 outputs where 1 are needed"));
}

TEST(Verify, RejectsAttributesOfAnotherOp) {
  Sample sample;
  sample.op("linear").attrs = ConvAttrs{};
  EXPECT_THAT(sample.problem(), HasSubstr("op 3 (linear linear): it has attributes of another op"));
}

TEST(Verify, RejectsAWrongShape) {
  Sample sample;
  sample.graph.tensor(sample.z).shape = {4, 6};
  EXPECT_THAT(sample.problem(), HasSubstr("output 0 is [4, 6] where [4, 5] is needed"));
  Sample other;
  other.graph.tensor(other.dw).shape = {3, 5};
  EXPECT_THAT(other.problem(), HasSubstr("[3, 5] from 0 on is no gradient of [5, 3]"));
  Sample empty;
  empty.graph.tensor(empty.y).shape = {4, 0};
  EXPECT_THAT(empty.problem(), HasSubstr("tensor y is [4, 0]"));
}

TEST(Verify, RejectsAWrongDtype) {
  Sample sample;
  sample.graph.tensor(sample.graph.ops[1].outputs[0]).dtype = DType::f32;
  EXPECT_THAT(sample.problem(), HasSubstr("input labels may not be f32"));
  Sample other;
  other.graph.tensor(other.y).dtype = DType::s32;
  EXPECT_THAT(other.problem(), HasSubstr("output y may not be s32"));
}

TEST(Verify, AcceptsATensorThatTakesOverAStorageNobodyReadsAnyMore) {
  Sample sample;
  sample.graph.tensor(sample.p).storage = sample.graph.tensor(sample.z).storage;
  EXPECT_EQ(sample.problem(), "");
}

TEST(Verify, RejectsAReadAfterTheStorageWasTakenOver) {
  Sample sample;
  sample.graph.tensor(sample.z).storage = sample.graph.tensor(sample.y).storage;
  EXPECT_THAT(sample.problem(), HasSubstr("reads y, whose storage z has taken over"));
}

TEST(Verify, RejectsTwoOutputsInOneStorage) {
  Sample sample;
  sample.graph.tensor(sample.p).storage = sample.graph.tensor(sample.loss).storage;
  EXPECT_THAT(sample.problem(), HasSubstr("two outputs share the storage of loss"));
}

TEST(Verify, RejectsATensorWithoutStorage) {
  Sample sample;
  sample.graph.tensor(sample.y).storage = kNone;
  EXPECT_THAT(sample.problem(), HasSubstr("tensor y has no storage"));
}

TEST(Verify, RejectsStateThatEndsInAnotherStorage) {
  Sample sample;
  sample.graph.tensor(sample.updated).storage = sample.graph.storages++;
  EXPECT_THAT(sample.problem(), HasSubstr("state w ends in w.updated's other storage"));
}

TEST(Verify, RejectsStateThatEndsInAnotherLayout) {
  Sample sample;
  sample.graph.tensor(sample.w).layout = {"blocked", 64, nullptr};
  EXPECT_THAT(sample.problem(), HasSubstr("state w ends in w.updated of another shape or layout"));
  sample.graph.tensor(sample.updated).layout = {"blocked", 64, nullptr};
  EXPECT_EQ(sample.problem(), "");
}

TEST(Verify, RejectsStateThatIsNotWhatItsStorageHoldsAtTheEnd) {
  Sample sample;
  sample.graph.carried[0].end = sample.w;
  EXPECT_THAT(sample.problem(), HasSubstr("state w is not what its storage holds at the end"));
}

TEST(Verify, RejectsStateThatSharesStorageOrIsNotCarried) {
  Sample sample;
  const TensorId other = sample.graph.add_state("other", {5, 3}, Role::parameter, {});
  sample.graph.tensor(other).storage = sample.graph.tensor(sample.w).storage;
  EXPECT_THAT(sample.problem(), HasSubstr("state other shares its storage with other state"));
  Sample lost;
  lost.graph.carried.clear();
  EXPECT_THAT(lost.problem(), HasSubstr("reads w, which nothing wrote before"));
}

TEST(Verify, RejectsACarriedTensorThatIsNotState) {
  Sample sample;
  sample.graph.carried.push_back({sample.y, sample.y});
  EXPECT_THAT(sample.problem(), HasSubstr("carried tensor y is not state"));
}

TEST(Verify, RejectsALossThatIsNotOneNumber) {
  Sample sample;
  sample.graph.loss = sample.z;
  EXPECT_THAT(sample.problem(), HasSubstr("the loss is f32[4, 5]"));
}

TEST(Verify, RejectsPortsThatTheirOpsDoNotKnow) {
  Sample sample;
  sample.graph.inputs[1].tensor = sample.y;
  EXPECT_THAT(sample.problem(), HasSubstr("op 1 (input labels): its port has another tensor"));
  Sample other;
  other.graph.outputs[0].tensor = other.z;
  EXPECT_THAT(other.problem(), HasSubstr("its port has another tensor"));
  Sample none;
  none.graph.outputs.clear();
  EXPECT_THAT(none.problem(), HasSubstr("there is no such port"));
}

TEST(Graph, FindsPortsByName) {
  const Sample sample;
  EXPECT_EQ(sample.graph.find_input("labels"), 1);
  EXPECT_EQ(sample.graph.find_output("loss"), 0);
  EXPECT_EQ(sample.graph.find_input("loss"), kNone);
}

TEST(Verify, KnowsReordersAndLayouts) {
  Sample sample;
  const TensorId blocked = sample.graph.add_tensor("z.blocked", DType::f32, {4, 5}, Role::activation);
  sample.graph.tensor(blocked).layout = {"blocked", 128, nullptr};
  sample.graph.add_op({OpKind::reorder, Phase::update, "reorder", {sample.z}, {blocked}, NoAttrs{}});
  EXPECT_EQ(sample.problem(), "");
  EXPECT_EQ(storage_sizes(sample.graph)[static_cast<std::size_t>(sample.graph.tensor(blocked).storage)], 128);
  sample.graph.tensor(blocked).dtype = DType::s32;
  EXPECT_THAT(sample.problem(), HasSubstr("it may not change the dtype"));
}

TEST(Graph, StorageIsAsLargeAsItsLargestTensor) {
  Sample sample;
  sample.graph.tensor(sample.p).storage = sample.graph.tensor(sample.dw).storage;
  const auto sizes = storage_sizes(sample.graph);
  ASSERT_EQ(sizes.size(), static_cast<std::size_t>(sample.graph.storages));
  EXPECT_EQ(sizes[static_cast<std::size_t>(sample.graph.tensor(sample.dw).storage)], 80);
  for (StorageId storage = 0; storage < sample.graph.storages; ++storage) {
    EXPECT_EQ(sizes[static_cast<std::size_t>(storage)], sample.graph.storage_bytes(storage));
  }
}

TEST(Print, HasALineForEachOpAndTotalsByRole) {
  Sample sample;
  const std::string text = print(sample.graph);
  EXPECT_THAT(text, HasSubstr("sample: 8 ops, 9 tensors, 8 storages\n"));
  EXPECT_THAT(text, HasSubstr("     2 forward  activation{relu} relu: images f32[4, 3] -> y f32[4, 3]\n"));
  EXPECT_THAT(
      text,
      HasSubstr("     7 update   sgd_update update: w f32[5, 3], w.grad f32[5, 3] -> w.updated f32[5, 3]\n"));
  EXPECT_THAT(text, HasSubstr("     1 parameter        60 B\n"));
  sample.graph.tensor(sample.y).layout = {"blocked", 64, nullptr};
  EXPECT_THAT(print(sample.graph), HasSubstr("y f32[4, 3]:blocked"));
}

}  // namespace
}  // namespace penstock::ir
