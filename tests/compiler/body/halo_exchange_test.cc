// Convolutions split over positions exchange halos with their neighbours, and
// owe nothing else but the sum of their weights' gradients; any legal split of
// a convolutional net compiles.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kBatch = 2, kChannels = 8, kHeight = 32, kWidth = 16;
constexpr int64_t kRow = 2 * kBatch * kChannels * kWidth;  // bytes in bf16

PlanUnderTest ByHand() {
  PlanUnderTest plan({{"channels", kChannels},
                      {"height", kHeight},
                      {"width", kWidth},
                      {"half_height", kHeight / 2},
                      {"half_width", kWidth / 2},
                      {"window", 3},
                      {"one", 1}});
  plan.MicroBatches(kBatch, 1).ByHand();
  return plan;
}

// A 3x3 convolution that keeps the size.
int Convolution(BodyWriter& body, absl::string_view name, int x) {
  return body.Op1(name, "conv2d(pad=1)", {x},
                  {{"n", "channels"},
                   {"c", "channels"},
                   {"i", "height"},
                   {"j", "width"},
                   {"p", "height"},
                   {"q", "width"},
                   {"k", "window"},
                   {"u", "window"}});
}

std::string Permute(int64_t bytes) { return absl::StrCat("permute(tp) ", bytes); }

TEST(HaloExchangeTest, ARowFromEveryNeighbour) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "channels", "height", "width"});
  const int a = Convolution(body, "conv1", x);
  const int b = body.Op1("act", "relu_nd(rank=4)", {a});
  const int c = Convolution(body, "conv2", b);
  body.OutPort(body.Op1("act2", "relu_nd(rank=4)", {c}));
  for (const char* op : {"m.conv1", "m.conv2"}) plan.Split(op, "tp", {"height"});
  for (const char* op : {"m.act", "m.act2"}) plan.Split(op, "tp", {"height"});
  plan.Tp(4);
  const Moves moves = plan.Traffic();
  // Both convolutions read a row above and below their own.
  EXPECT_THAT(moves.forward, ElementsAre(Permute(2 * kRow), Permute(2 * kRow)));
  // Both input gradients read a row above and below of what comes in.
  EXPECT_THAT(moves.backward, ElementsAre(Permute(2 * kRow), Permute(2 * kRow)));
  const int64_t weights = 2 * kChannels * kChannels * 9;
  EXPECT_THAT(moves.gradients, ElementsAre(AllReduce("tp", 4 * weights)));
}

TEST(HaloExchangeTest, StridedAndChannelSplits) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m");
  const int x = body.InPort("x", {"batch", "channels", "height", "width"});
  const int a = body.Op1("act", "relu_nd(rank=4)", {x});
  const int b = body.Op1("conv", "conv2d(stride=2, pad=1)", {a},
                         {{"n", "channels"},
                          {"c", "channels"},
                          {"i", "half_height"},
                          {"j", "half_width"},
                          {"p", "height"},
                          {"q", "width"},
                          {"k", "window"},
                          {"u", "window"}});
  body.OutPort(body.Op1("act2", "relu_nd(rank=4)", {b}));
  plan.Split("m.act", "tp", {"height"}).Split("m.conv", "tp", {"height"});
  plan.Split("m.act2", "tp", {"half_height"}).Tp(4);
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.forward, ElementsAre(Permute(kRow)));  // the row above only
  EXPECT_THAT(moves.backward, ElementsAre(Permute(kRow / 2)));
}

// Any factor of any op over both axes.
TEST(HaloExchangeTest, AnyLegalSplitCompiles) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    PlanUnderTest plan = ByHand();
    plan.Dp(2).Tp(2).MicroBatches(kBatch, 1);
    BodyWriter& body = plan.Segment("m");
    const int x = body.InPort("x", {"batch", "channels", "height", "width"});
    const int a = Convolution(body, "conv1", x);
    const int b = body.Op("bn", "batch_norm(rank=2)", {a}, {{"c", "channels"}})[0];
    const int c = body.Op1("act", "relu_nd(rank=4)", {b});
    const int d = body.Op1("pool", "max_pool2d(stride=2, pad=1)", {c},
                           {{"b", "batch"},
                            {"c", "channels"},
                            {"i", "half_height"},
                            {"j", "half_width"},
                            {"p", "height"},
                            {"q", "width"},
                            {"k", "window"},
                            {"u", "window"}});
    body.OutPort(body.Op1("act2", "relu_nd(rank=4)", {d}));
    const ModelGraph& graph = plan.graph();
    for (const OpNode& op : graph.bodies[0].ops) {
      for (const char* axis : {"dp", "tp"}) {
        const size_t factor = random() % (op.factor_dims.size() + 1);
        if (factor == op.factor_dims.size()) continue;
        const ModelDim& dim = graph.dims[op.factor_dims[factor]];
        if (dim.name == "window" || dim.name == "one") continue;
        plan.Split(absl::StrCat("m.", op.name), axis,
                   {absl::StrCat(".", op.rule->factors()[factor])});
      }
    }
    const absl::StatusOr<ExecutionGraph> compiled = plan.Compile();
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    int64_t live = 0;
    for (const Instance& instance : compiled->programs[0].instances) {
      for (const MemoryEvent& event : compiled->blocks[instance.block].memory) live += event.delta;
    }
    EXPECT_EQ(live, 0);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace plancast
