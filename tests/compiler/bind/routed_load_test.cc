// Unlike loads of experts: what each device works, what the busiest moves and holds.

#include "compiler/bind/routed_load.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/moe_layer.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MoeSizes kSizes;  // 8 experts
constexpr int64_t kRouted = 2 * kSizes.seq * kSizes.topk * kSizes.hidden;

PlanUnderTest Moe(std::vector<double> loads = {5, 3, 1, 1, 2, 2, 1, 1}) {
  PlanUnderTest plan(kSizes.Dims());
  BodyWriter& body = plan.Segment("layers", 2);
  body.OutPort(WriteMoeLayer(body, body.InPort("x", {"batch", "seq", "hidden"})));
  plan.tree().SetLoad("experts", std::move(loads));
  return plan;
}

// A kernel's price in tests is a second a FLOP, and the clock holds days.
ExecutionGraph CompileInNanoseconds(PlanUnderTest& plan) {
  ExecutionGraph graph = *plan.Compile();
  for (KernelSpec& kernel : graph.kernels) kernel.flops *= 1e-9;
  return graph;
}

std::string ErrorOf(PlanUnderTest& plan) { return std::string(plan.Compile().status().message()); }

TEST(RoutedLoadTest, DevicesHaveTheMeanOfTheirExperts) {
  const ExecutionGraph graph = *Moe().Dp(8).Ep(4).Compile();
  // dp.1 is the inner half; two experts a device, of 16 shares.
  EXPECT_THAT(graph.skew.axes, ElementsAre(*graph.mesh.FindAxis("dp.1")));
  EXPECT_THAT(graph.skew.loads,
              ElementsAre(DoubleEq(2), DoubleEq(0.5), DoubleEq(1), DoubleEq(0.5)));
  int routed = 0;
  for (const KernelSpec& kernel : graph.kernels) routed += kernel.routed;
  // fc1, act and fc2, forward and by their inputs and weights.
  EXPECT_EQ(routed, 3 + 2 * 2 + 1 + 1);
}

TEST(RoutedLoadTest, ExchangesWaitForTheBusiest) {
  PlanUnderTest even = Moe(std::vector<double>(8, 3.0));
  const std::string exchange = AllToAll("dp", kRouted);
  EXPECT_THAT(even.Dp(4).Ep(4).Traffic().forward, ElementsAre(exchange, exchange));
  EXPECT_TRUE(even.Compile()->skew.empty());
  PlanUnderTest skewed = Moe();
  const std::string twice = AllToAll("dp", 2 * kRouted);
  EXPECT_THAT(skewed.Dp(4).Ep(4).Traffic().forward, ElementsAre(twice, twice));
}

TEST(RoutedLoadTest, MemoryIsThatOfTheBusiest) {
  const auto most = [](PlanUnderTest plan) {
    plan.Dp(4).Ep(4);
    return ReplayMemory(*plan.Compile(), RuntimeParams())[0]
        .bytes[static_cast<int>(MemoryKind::kActivations)];
  };
  EXPECT_GT(most(Moe()), most(Moe(std::vector<double>(8, 1.0))));
}

// One class for each load, however many places and copies of experts have it: places
// 1 and 3 of four have the same.
TEST(RoutedLoadTest, EveryLoadIsAClass) {
  for (const int64_t dp : {4, 8, 16}) {
    PlanUnderTest plan = Moe();
    const ExecutionGraph graph = CompileInNanoseconds(plan.Dp(dp).Ep(4));
    const Machine machine = *Machine::Create(UnitMachine(dp / 4, 4, 4));
    const auto folded = Simulation::Run(graph, machine, RealiseOn(machine), Form::kFolded, {});
    ASSERT_TRUE(folded.ok()) << folded.status();
    EXPECT_EQ((*folded)->sim().entities.size(), 3u) << dp;
  }
}

TEST(RoutedLoadTest, MoreTokensTakeLonger) {
  const auto time = [](std::vector<double> loads) {
    PlanUnderTest plan = Moe(std::move(loads));
    const ExecutionGraph graph = CompileInNanoseconds(plan.Dp(4).Ep(4));
    const Machine machine = *Machine::Create(UnitMachine(1, 4, 4));
    const auto run = Simulation::Run(graph, machine, RealiseOn(machine), Form::kFolded, {});
    return (*run)->trace().makespan_ps;
  };
  EXPECT_GT(time({5, 3, 1, 1, 2, 2, 1, 1}), time(std::vector<double>(8, 1.0)));
}

TEST(RoutedLoadTest, LoadsThatSayNothingAreErrors) {
  PlanUnderTest few = Moe({1, 2});
  EXPECT_EQ(ErrorOf(few), "`load` of `experts` lists 2 numbers, and there are 8.");
  PlanUnderTest negative = Moe({1, 2, 3, 4, 5, 6, 7, -1});
  EXPECT_THAT(ErrorOf(negative), HasSubstr("give shares of the tokens"));
  PlanUnderTest other = Moe();
  other.tree() = StrategyTree();
  other.tree().SetLoad("hidden", std::vector<double>(32, 1.0));
  EXPECT_EQ(ErrorOf(other), "`load` of `hidden`: nothing is routed over it.");
  other.tree() = StrategyTree();
  other.tree().SetLoad("expert", {1});
  EXPECT_THAT(ErrorOf(other), HasSubstr("`expert`"));
}

}  // namespace
}  // namespace plancast
