#include "graph/transformer/body_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

const std::vector<ModelDim> kDims = {{"batch", 0}, {"seq", 8}, {"hidden", 4}, {"ffn", 16}};

TEST(BodyWriterTest, MakesParametersAndOutputsOfTheRule) {
  BodyWriter writer("body", kDims);
  const int x = writer.InPort("x", {"batch", "seq", "hidden"});
  const int y = writer.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  writer.OutPort(y);
  const Body body = writer.Take();

  ASSERT_EQ(body.ops.size(), 1u);
  const TensorInfo& weight = body.tensors[body.ops[0].inputs[1]];
  EXPECT_EQ(weight.name, "fc1.w");
  EXPECT_EQ(weight.kind, TensorInfo::Kind::kParameter);
  EXPECT_THAT(weight.dims, ElementsAre(3, 2));
  EXPECT_EQ(body.tensors[y].name, "fc1.y");
  EXPECT_EQ(body.tensors[y].kind, TensorInfo::Kind::kActivation);
  EXPECT_THAT(body.tensors[y].dims, ElementsAre(0, 1, 3));
  EXPECT_THAT(body.in_ports, ElementsAre(x));
  EXPECT_THAT(body.out_ports, ElementsAre(y));
}

TEST(BodyWriterTest, LabelsHoldUntilTheNext) {
  BodyWriter writer("body", kDims);
  int x = writer.InPort("x", {"batch", "seq", "hidden"});
  writer.Fusion("bias_dropout_add");
  x = writer.Op1("bias", "bias_add", {x});
  writer.Fusion("");
  writer.RecomputeGroup("core");
  x = writer.Op1("dropout", "dropout", {x});
  const Body body = writer.Take();
  EXPECT_EQ(body.ops[0].fusion, "bias_dropout_add");
  EXPECT_EQ(body.ops[0].recompute_group, "");
  EXPECT_EQ(body.ops[1].fusion, "");
  EXPECT_EQ(body.ops[1].recompute_group, "core");
}

TEST(BodyWriterDeathTest, AnUnknownDimIsOurBug) {
  BodyWriter writer("body", kDims);
  EXPECT_DEATH(writer.InPort("x", {"batch", "width"}), "no dim `width`");
}

}  // namespace
}  // namespace plancast
