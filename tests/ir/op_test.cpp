#include "ir/op.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "ir/infer.h"

namespace penstock::ir {
namespace {

ConvAttrs conv_attrs(std::int64_t stride, std::int64_t padding) {
  return {{stride, stride}, {1, 1}, {padding, padding}, {padding, padding}, {}, 1, false};
}

TEST(OpNames, AreAllDifferent) {
  std::set<std::string> names;
  for (int kind = 0; kind < kOpKinds; ++kind) names.insert(op_name(static_cast<OpKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kOpKinds));
}

TEST(AttrsText, LeavesTheUsualValuesOut) {
  EXPECT_EQ(attrs_text(NoAttrs{}), "");
  EXPECT_EQ(attrs_text(conv_attrs(1, 0)), "");
  ConvAttrs attrs = conv_attrs(2, 1);
  attrs.groups = 32;
  EXPECT_EQ(attrs_text(attrs), "stride 2, padding 1, groups 32");
  attrs.padding_end = {1, 0};
  EXPECT_EQ(attrs_text(attrs), "stride 2, padding 1x1:1x0, groups 32");
  EXPECT_EQ(attrs_text(ActivationAttrs{Activation::gelu}), "gelu");
  EXPECT_EQ(attrs_text(DropoutAttrs{0.5F, 3}), "probability 0.5, key 3");
}

TEST(AttrsText, TellsDifferentAttributesApart) {
  const std::vector<Attrs> all{conv_attrs(1, 0),
                               conv_attrs(2, 0),
                               conv_attrs(1, 1),
                               ConvAttrs{{1, 2}, {1, 1}, {0, 0}, {0, 0}, {}, 1, false},
                               ConvAttrs{{1, 1}, {2, 2}, {0, 0}, {0, 0}, {}, 1, false},
                               ConvAttrs{{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1, false},
                               ConvAttrs{{1, 1}, {1, 1}, {0, 0}, {0, 0}, {}, 2, false},
                               ConvAttrs{{1, 1}, {1, 1}, {0, 0}, {0, 0}, {}, 1, true}};
  const std::vector<Attrs> norms{NormAttrs{},
                                 NormAttrs{1e-3F},
                                 NormAttrs{1e-5F, true},
                                 NormAttrs{1e-5F, true, true},
                                 NormAttrs{1e-5F, true, true, true},
                                 NormAttrs{1e-5F, true, false, true},
                                 NormAttrs{.silu = true}};
  const std::vector<Attrs> adams{AdamAttrs{},
                                 AdamAttrs{0.8F},
                                 AdamAttrs{0.9F, 0.99F},
                                 AdamAttrs{0.9F, 0.999F, 1e-7F},
                                 AdamAttrs{0.9F, 0.999F, 1e-8F, 0.1F},
                                 AdamAttrs{0.9F, 0.999F, 1e-8F, 0.1F, true}};
  for (const auto& family : {all, norms, adams}) {
    std::set<std::string> texts;
    for (const Attrs& attrs : family) texts.insert(attrs_text(attrs));
    EXPECT_EQ(texts.size(), family.size());
  }
}

TEST(InferShapes, FollowsPyTorchsRules) {
  const auto only = [](const Inferred& inferred) {
    EXPECT_EQ(inferred.problem, "");
    return inferred.shapes.empty() ? Shape{} : inferred.shapes[0];
  };
  EXPECT_EQ(only(infer_shapes(OpKind::conv, conv_attrs(2, 3), {{16, 3, 224, 224}, {64, 3, 7, 7}})),
            (Shape{16, 64, 112, 112}));
  ConvAttrs up = conv_attrs(2, 1);
  up.output_padding = {1, 1};
  EXPECT_EQ(only(infer_shapes(OpKind::conv_transpose, up, {{1, 8, 5, 6}, {8, 4, 3, 3}})),
            (Shape{1, 4, 10, 12}));
  EXPECT_EQ(
      only(infer_shapes(OpKind::max_pool, PoolAttrs{{3, 3}, {2, 2}, {1, 1}, {1, 1}}, {{2, 64, 112, 112}})),
      (Shape{2, 64, 56, 56}));
  EXPECT_EQ(only(infer_shapes(OpKind::matmul, MatmulAttrs{true, true}, {{2, 4, 3}, {2, 5, 4}})),
            (Shape{2, 3, 5}));
}

TEST(InferShapes, SaysWhatDoesNotFit) {
  EXPECT_EQ(infer_shapes(OpKind::conv, conv_attrs(1, 0), {{1, 3, 4, 4}, {8, 3, 7, 7}}).problem,
            "the kernel covers 7 elements along axis 2 where [1, 3, 4, 4] (padding included) has only 4");
  EXPECT_EQ(infer_shapes(OpKind::conv, conv_attrs(1, 0), {{1, 3, 4, 4}, {8, 4, 3, 3}}).problem,
            "weights [8, 4, 3, 3] in 1 groups take 4 channels, [1, 3, 4, 4] has 3");
  EXPECT_EQ(infer_shapes(OpKind::add, NoAttrs{}, {{2, 3}, {3, 2}}).problem,
            "the shapes [2, 3] and [3, 2] differ");
  EXPECT_EQ(infer_shapes(OpKind::add, NoAttrs{}, {{2, 3}}).problem, "add does not take 1 inputs");
  EXPECT_NE(infer_shapes(OpKind::max_pool, PoolAttrs{{2, 2}, {2, 2}, {2, 2}, {0, 0}}, {{1, 1, 4, 4}}).problem,
            "");
  EXPECT_NE(infer_shapes(OpKind::crop, PadAttrs{{0, 2}, {0, 1}}, {{4, 3}}).problem, "");
  EXPECT_THROW(infer_shapes(OpKind::reshape, NoAttrs{}, {{2, 3}}), InternalError);
}

}  // namespace
}  // namespace penstock::ir
