#include "compiler/lower/buffers.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/bind/bind.h"
#include "compiler/body/differentiate.h"
#include "compiler/body/partition.h"
#include "compiler/body/relayout_pass.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// A body plan with its buffers, by the names of values.
class Placed {
 public:
  explicit Placed(PlanUnderTest& plan) : profile_(plan.profile()) {
    bound_ = *Bind(plan.graph(), plan.tree(), plan.options());
    Session session;
    DifferentiatedBody steps =
        *DifferentiateBody(bound_.graph, bound_.bodies[0], profile_.kernels.fusions, session);
    steps = *PartitionBody(bound_.graph, bound_.mesh, bound_.bodies[0], steps);
    std::vector<Layout> ports;
    for (const std::optional<Layout>& wanted : WantedInPorts(body(), steps)) {
      ports.push_back(wanted.value());
    }
    plan_ = *InsertRelayouts(bound_.graph, bound_.mesh, bound_.bodies[0], steps, ports, ports,
                             profile_);
    const LowerContext context{&bound_.graph, &bound_.mesh, &bound_.bodies[0], &profile_,
                               DType::kBf16};
    groups_ = GroupLaunches(context, plan_);
    buffers_ = AssignBuffers(context, plan_, groups_);
  }

  // The buffers of all versions of a value.
  std::set<int> BuffersOf(const std::string& name) const {
    std::set<int> found;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      if (FactsOf(bound_.graph, body(), plan_.values[v].ref).name == name) {
        found.insert(buffers_.of_value[v]);
      }
    }
    EXPECT_FALSE(found.empty()) << name;
    return found;
  }
  int BufferOf(const std::string& name) const {
    const std::set<int> found = BuffersOf(name);
    EXPECT_EQ(found.size(), 1u) << name;
    return *found.begin();
  }
  int64_t BytesOf(const std::string& name) const { return buffers_.bytes.at(BufferOf(name)); }

 private:
  const Body& body() const { return bound_.graph.bodies[0]; }

  const SoftwareProfile profile_;
  BoundModel bound_;
  BodyPlan plan_;
  LaunchGroups groups_;
  Buffers buffers_;
};

constexpr int64_t kStream = 2 * 2 * 16 * 64;  // bf16 x batch x seq x hidden

PlanUnderTest Mlp() {
  PlanUnderTest plan({{"seq", 16}, {"hidden", 64}, {"ffn", 256}});
  BodyWriter& body = plan.Segment("layers", 2);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  int y = body.Op1("fc1", "linear", {body.Op1("norm", "rms_norm", {x})}, {{"n", "ffn"}});
  body.Fusion("bias_gelu");
  y = body.Op1("bias", "bias_add", {y}, {{"h", "ffn"}});
  y = body.Op1("act", "gelu", {y});
  body.Fusion("");
  y = body.Op1("fc2", "linear", {y}, {{"k", "ffn"}});
  body.OutPort(body.Op1("residual", "residual_add", {y, x}));
  plan.MicroBatches(2, 1);
  return plan;
}

TEST(BuffersTest, AnAllReduceOverwritesItsOperand) {
  const Placed placed(Mlp().Tp(4));
  EXPECT_EQ(placed.BytesOf("fc2.y"), kStream);
}

TEST(BuffersTest, AGatherNeedsRoomForBoth) {
  const Placed placed(Mlp().Tp(4).Sp());
  // The shard, and the whole in forward and again in backward.
  EXPECT_EQ(placed.BuffersOf("norm.y").size(), 3u);
}

TEST(BuffersTest, TheGradientOfAResidualIsPassedOnUnderAnotherName) {
  const Placed placed(Mlp().Tp(1));
  EXPECT_EQ(placed.BufferOf("d fc2.y"), placed.BufferOf("d residual.y"));
}

TEST(BuffersTest, WhatAFusedKernelPassesOnHasNoBuffer) {
  PlanUnderTest plan = Mlp();
  EXPECT_GE(Placed(plan).BufferOf("bias.y"), 0);
  plan.profile().kernels.fusions = {"bias_gelu"};
  EXPECT_EQ(Placed(plan).BufferOf("bias.y"), -1);
}

TEST(BuffersTest, ABiasThatItsProductAddsIsWrittenOnce) {
  PlanUnderTest plan = Mlp();
  EXPECT_NE(Placed(plan).BufferOf("bias.y"), Placed(plan).BufferOf("fc1.y"));
  plan.profile().kernels.fusions = {"product_bias"};
  EXPECT_EQ(Placed(plan).BufferOf("bias.y"), Placed(plan).BufferOf("fc1.y"));
}

TEST(BuffersTest, ParametersAreNoActivations) {
  const Placed placed(Mlp().Tp(1));
  EXPECT_EQ(placed.BufferOf("fc1.w"), -1);
  EXPECT_EQ(placed.BufferOf("d fc1.w"), -1);
}

TEST(BuffersTest, AShardTakesItsShare) {
  const Placed placed(Mlp().Tp(4));
  EXPECT_EQ(placed.BytesOf("fc1.y"), kStream * 4 / 4);  // ffn is four times hidden
}

}  // namespace
}  // namespace plancast
