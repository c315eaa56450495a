#include "compiler/body/partition.h"

#include <vector>

#include "compiler/bind/bind.h"
#include "compiler/body/differentiate.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// One linear layer, 4 x 8 tokens, 64 -> 256, columns over tp, samples over dp.
class PartitionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PlanUnderTest plan({{"seq", 8}, {"hidden", 64}, {"ffn", 256}});
    BodyWriter& body = plan.Segment("layers", 2);
    body.OutPort(
        body.Op1("fc1", "linear", {body.InPort("x", {"batch", "seq", "hidden"})}, {{"n", "ffn"}}));
    plan.Dp(2).Tp(4).MicroBatches(2, 1);
    ASSERT_OK_AND_ASSIGN(bound_, Bind(plan.graph(), plan.tree(), plan.options()));
    Session session;
    ASSERT_OK_AND_ASSIGN(body_, DifferentiateBody(bound_.graph, bound_.bodies[0], {}, session));
    ASSERT_OK_AND_ASSIGN(body_, PartitionBody(bound_.graph, bound_.mesh, bound_.bodies[0], body_));
  }
  const OpNode& op() const { return bound_.graph.bodies[0].ops[0]; }
  const FactorSplit& split() const { return bound_.bodies[0].splits[0]; }
  // Of tensor `name` of a step.
  std::string LayoutOf(const OpStep& step, const char* name) const {
    return step.partition.tensors[step.rule->FindTensor(name).value()].DebugString(bound_.mesh);
  }

  BoundModel bound_;
  DifferentiatedBody body_;
};

TEST_F(PartitionTest, ExtentsAreThoseOfTheModelDims) {
  // b, s, k, n in the rule's own order.
  const std::vector<int64_t> extents = FactorExtents(bound_.graph, op(), *op().rule);
  const std::vector<int64_t> local =
      LocalExtents(bound_.graph, bound_.mesh, op(), split(), *op().rule);
  const auto at = [&](const std::vector<int64_t>& list, const char* factor) {
    return list[op().rule->FindFactor(factor).value()];
  };
  EXPECT_EQ(at(extents, "b"), 4);
  EXPECT_EQ(at(extents, "n"), 256);
  EXPECT_EQ(at(local, "b"), 2);
  EXPECT_EQ(at(local, "s"), 8);
  EXPECT_EQ(at(local, "k"), 64);
  EXPECT_EQ(at(local, "n"), 64);
}

TEST_F(PartitionTest, ADerivedRuleIsCutByTheNamesOfItsFactors) {
  for (const OpStep& step : body_.backward) {
    const FactorSplit derived = SplitFor(*step.rule, op(), split());
    for (const char* factor : {"b", "s", "k", "n"}) {
      EXPECT_EQ(derived.axes[step.rule->FindFactor(factor).value()],
                split().axes[op().rule->FindFactor(factor).value()])
          << step.rule->name() << " " << factor;
    }
  }
}

TEST_F(PartitionTest, CutFactorsThatATensorLacksLeaveItWholeOrPartial) {
  EXPECT_EQ(LayoutOf(body_.forward[0], "w"), "[tp: Shard(0)]");
  EXPECT_EQ(LayoutOf(body_.forward[0], "y"), "[dp: Shard(0), tp: Shard(2)]");
  ASSERT_EQ(body_.backward.size(), 2u);
  EXPECT_EQ(LayoutOf(body_.backward[0], "d_x"), "[dp: Shard(0), tp: Partial(sum)]");
  EXPECT_EQ(LayoutOf(body_.backward[1], "d_w"), "[dp: Partial(sum), tp: Shard(0)]");
}

}  // namespace
}  // namespace plancast
