#include "kernels/op_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/case_graph.h"
#include "kernels/kernel.h"
#include "kernels/run_case.h"

namespace penstock::testing {
namespace {

TEST(OpCases, CoverEveryOpKind) {
  std::set<ir::OpKind> covered;
  for (const OpCase& op_case : op_cases()) {
    for (const ir::Op& op : make_case_graph(op_case, true).graph.ops) covered.insert(op.kind);
  }
  for (int kind = 0; kind < ir::kOpKinds; ++kind) {
    // Ops between ranks need several of them: tests/lower/exchange_test.cpp and tests/ranks.
    const auto op = static_cast<ir::OpKind>(kind);
    if (op >= ir::OpKind::reduce_start && op <= ir::OpKind::take_slice) continue;
    // An output makes nothing to compare: tests/kernels/port_test.cpp.
    if (op == ir::OpKind::output) continue;
    EXPECT_TRUE(covered.contains(static_cast<ir::OpKind>(kind)))
        << ir::op_name(static_cast<ir::OpKind>(kind));
  }
}

TEST(OpCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
}

class OpCaseTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(OpCaseTest, IsASoundGraph) {
  EXPECT_NO_THROW(ir::verify(make_case_graph(GetParam(), false).graph));
  EXPECT_NO_THROW(ir::verify(make_case_graph(GetParam(), true).graph));
}

TEST_P(OpCaseTest, ReferenceGivesTheSameInPlace) {
  const auto backend = kernels::make_reference_backend();
  const auto apart = run_case(*backend, GetParam());
  EXPECT_FALSE(apart.empty());
  EXPECT_EQ(difference(run_case(*backend, GetParam(), {.in_place = true}), apart, 0), "");
  EXPECT_EQ(difference(run_case(*backend, GetParam(), {.variant = 0}), apart, 0), "");
}

INSTANTIATE_TEST_SUITE_P(All, OpCaseTest, ::testing::ValuesIn(op_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::testing
