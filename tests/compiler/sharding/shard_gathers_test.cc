// What gathers over many ranks make of the kernels behind them, and collectives over lists of the
// ranks' parts.

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "executor/realise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kLayers = 3, kHidden = 8;

// Layers of two products, of which the second has 1 / 4 of the first's parameters.
PlanUnderTest Layers(int64_t dp, int zero = 3) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", kHidden}, {"small", 2}});
  BodyWriter& embed = plan.Segment("embed");
  const int x = embed.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  embed.OutPort(embed.Op1("act", "relu", {x}, {{"f", "hidden"}}));
  BodyWriter& layer = plan.Segment("layers", kLayers);
  const int fc = layer.Op1("fc", "linear", {layer.InPort("x", {"batch", "seq", "hidden"})});
  layer.OutPort(layer.Op1("act", "relu", {fc}, {{"f", "hidden"}}));
  plan.Dp(dp);
  plan.options().zero = zero;
  plan.options().sync_each = true;
  return plan;
}

// What the kernels of layers were gathered over, by the name of their block.
std::vector<int64_t> GatheredOver(PlanUnderTest& plan, const std::string& block) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  std::vector<int64_t> over;
  for (const Block& b : graph->blocks) {
    if (b.name != block) continue;
    for (int32_t t = 0; t < b.size(); ++t) {
      if (b.kind[t] == TaskKind::kKernel && b.label[t].rfind("layers.", 0) != 0) {
        over.push_back(graph->kernels[b.spec[t]].gathered_over);
      }
    }
  }
  EXPECT_FALSE(over.empty()) << block;
  return over;
}

TEST(GatheredOverTest, KernelsKnowTheRanksThatTheirParametersComeFrom) {
  for (const int64_t dp : {2, 4, 8}) {
    PlanUnderTest plan = Layers(dp);
    EXPECT_THAT(GatheredOver(plan, "layers.F"), Each(dp));
    EXPECT_THAT(GatheredOver(plan, "layers.B"), Each(dp));
    plan.options().reshard = false;  // there in backward passes
    EXPECT_THAT(GatheredOver(plan, "layers.F"), Each(dp));
    EXPECT_THAT(GatheredOver(plan, "layers.B"), Each(1));
  }
  PlanUnderTest whole = Layers(4, /*zero=*/2);
  EXPECT_THAT(GatheredOver(whole, "layers.F"), Each(1));
  PlanUnderTest replicas = Layers(8);
  replicas.options().hsdp = 4;
  EXPECT_THAT(GatheredOver(replicas, "layers.F"), Each(4));
}

TEST(GatheredOverTest, TheSlowestOfMoreHostsIsLaterByTheLogarithm) {
  PlanUnderTest plan = Layers(8);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  for (const int64_t hosts : {1, 2, 4}) {
    ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(hosts, 8 / hosts)));
    ASSERT_OK_AND_ASSIGN(const KernelPrices plain, PriceKernels(graph, machine, UnitCost()));
    ASSERT_OK_AND_ASSIGN(const KernelPrices late, PriceKernels(graph, machine, UnitCost(), 0.02));
    for (size_t k = 0; k < graph.kernels.size(); ++k) {
      const bool gathered = graph.kernels[k].gathered_over > 1;
      const double skew = gathered ? 0.02 * std::log(static_cast<double>(hosts)) : 0;
      EXPECT_DOUBLE_EQ(late.costs[k].seconds_alone, plain.costs[k].seconds_alone * (1 + skew));
    }
  }
}

struct Lists {
  std::vector<int64_t> gathered, reduced, launches;  // bytes of messages, kernels of copies
  int waits = 0;
};
Lists ListsIn(PlanUnderTest& plan, const std::string& block) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  Lists lists;
  for (const Block& b : graph->blocks) {
    if (b.name != block || !lists.gathered.empty()) continue;
    for (int32_t t = 0; t < b.size(); ++t) {
      lists.waits += (b.flags[t] & Block::kHostSync) != 0;
      if (b.kind[t] == TaskKind::kKernel) {
        const KernelSpec& kernel = graph->kernels[b.spec[t]];
        if (kernel.label == "from_list") lists.launches.push_back(kernel.launches);
        continue;
      }
      const CommSpec& comm = graph->comms[b.spec[t]];
      (comm.kind == CollectiveKind::kAllGather ? lists.gathered : lists.reduced)
          .push_back(comm.bytes);
    }
  }
  return lists;
}

TEST(ListCollectivesTest, EachLargeParameterGoesByItself) {
  PlanUnderTest plan = Layers(4);
  plan.options().prefetch = 0;
  plan.profile().host.launch_s = 1e-6;
  auto& style = plan.profile().data_parallel;
  const Lists joined = ListsIn(plan, "layers.B");
  EXPECT_THAT(joined.gathered, SizeIs(1));
  EXPECT_THAT(joined.launches, IsEmpty());
  style.lists = true;
  style.list_part_s = 3e-6;
  const Lists each = ListsIn(plan, "layers.B");
  EXPECT_THAT(each.gathered, ElementsAre(kHidden * kHidden * 2));
  EXPECT_EQ(each.gathered, joined.gathered);
  EXPECT_EQ(each.reduced, joined.reduced);
  EXPECT_THAT(each.launches, ElementsAre(12));  // 3 us of 4 parts
  EXPECT_EQ(each.waits, joined.waits + 1);
  // Where none is large, all go in one message, without lists.
  style.lists_above = kHidden * kHidden;
  const Lists small = ListsIn(plan, "layers.B");
  EXPECT_EQ(small.gathered, joined.gathered);
  EXPECT_EQ(small.reduced, joined.reduced);
  EXPECT_THAT(small.launches, IsEmpty());
}

// Of layers that run again: DeepSpeed gives up what is not used for a while.
TEST(GatheredAgainTest, WhatIsUsedLongAfterwardsComesOnceMore) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel(3));
  plan.Dp(4).MicroBatches(1, 2);
  plan.options().zero = 3;
  plan.options().prefetch = 0;
  auto& style = plan.profile().data_parallel;
  const auto moved = [&] { return MovedByKind(Compiled(plan))[CollectiveKind::kAllGather]; };
  style.lists = true;
  const std::vector<int64_t> once = ListsIn(plan, "layer.F").gathered;  // in the order of use
  for (const int64_t reuse : {int64_t{1}, int64_t{40'000}, int64_t{70'000}, int64_t{1} << 40}) {
    SCOPED_TRACE(testing::Message() << reuse);
    style.reuse_elements = reuse;
    plan.Recomputing(Recompute::kNone);
    EXPECT_EQ(ListsIn(plan, "layer.B").gathered, once);
    plan.Recomputing(Recompute::kFull);
    std::vector<int64_t> expected = once;
    double again = 0;
    for (size_t i = 0; i < once.size(); ++i) {
      const int64_t behind = std::accumulate(once.begin() + i + 1, once.end(), int64_t{0}) / 2;
      if (2 * behind < reuse) continue;
      expected.push_back(once[i]);
      again += static_cast<double>(once[i]);
    }
    EXPECT_EQ(ListsIn(plan, "layer.B").gathered, expected);
    // Three layers, two micro-batches; by lists and as one message.
    for (const bool lists : {true, false}) {
      style.lists = lists;
      const double some = moved();
      style.reuse_elements = 0;
      EXPECT_EQ(some - moved(), 3 * 2 * again);
      style.reuse_elements = reuse;
    }
    style.lists = true;
  }
  // Of layers of which one runs again, that one's.
  style.reuse_elements = 1;
  plan.Recomputing(Recompute::kFull);
  const double all = moved();
  plan.Recomputing(Recompute::kFull, /*layers=*/1);
  const double one = moved();
  plan.Recomputing(Recompute::kNone);
  EXPECT_EQ(3 * (one - moved()), all - moved());
  plan.Recomputing(Recompute::kFull);
  // What stays gathered is not gathered again.
  style.reuse_elements = 1;
  plan.options().reshard = false;
  const double stays = moved();
  style.reuse_elements = 0;
  EXPECT_EQ(moved(), stays);
}

}  // namespace
}  // namespace plancast
